"""``sage featurize``: a file with features, from states of the store."""

from __future__ import annotations

from pathlib import Path

import click

from ptkstore.cli.output import show
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

__all__ = ["featurize"]


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--ptk",
    "references",
    multiple=True,
    required=True,
    metavar="NAME[@vN]",
    help="The state to use. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Where to write.",
)
@shared_options
@pass_session
def featurize(session: Invocation, file: Path, references: tuple[str, ...], output: Path) -> None:
    """Add the features of trained PTKs to FILE, into OUT.

    Files are .parquet, .csv or .arrow, by their endings. States are private already: this costs
    nothing, may be repeated and reads no raw data. NAME alone is the latest version.

    \b
    Examples:
      sage featurize trips.csv --ptk hour-speed -o features.csv
      sage featurize trips.parquet --ptk hour-speed@v2 --ptk zone-fare -o features.parquet
    """
    from ptklib.features import featurize as add_features
    from ptkstore.cli.files import read_table, write_table

    with opened(session) as store:
        states = [store.get_state(reference) for reference in references]
    table = add_features(read_table(file), states)
    write_table(table, output)
    used = [f"{state.manifest.name}@v{state.manifest.version}" for state in states]
    added = [name for state in states for name in state.ptk.feature_names()]
    show(
        session,
        {
            "output": str(output),
            "rows": table.num_rows,
            "columns": table.column_names,
            "features": added,
            "states": used,
        },
        f"wrote {output}: {table.num_rows} rows with {', '.join(added)} from {', '.join(used)}",
    )
