"""``sage featurize``: a file with features, from states of the store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptklib.errors import Refused
from ptkstore.api.moments import millis_of
from ptkstore.api.references import parse_reference
from ptkstore.cli.output import show
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

if TYPE_CHECKING:
    from ptkstore.api.store import Store

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
@click.option(
    "--as-of",
    metavar="TIME",
    help="As knowledge was at TIME of the events (ISO 8601, UTC): of each NAME the newest version whose "
    "windows had ended by then.",
)
@shared_options
@pass_session
def featurize(
    session: Invocation,
    file: Path,
    references: tuple[str, ...],
    output: Path,
    as_of: str | None,
) -> None:
    """Add the features of trained PTKs to FILE, into OUT.

    Files are .parquet, .csv or .arrow, by their endings. States are private already: this costs
    nothing, may be repeated and reads no raw data. NAME alone is the latest version.

    \b
    Examples:
      sage featurize trips.csv --ptk hour-speed -o features.csv
      sage featurize march.csv --ptk hour-speed --as-of 2026-03-01 -o features.csv
      sage featurize trips.parquet --ptk hour-speed@v2 --ptk zone-fare -o features.parquet
    """
    from ptklib.features import featurize as add_features
    from ptkstore.cli.files import read_table, write_table

    at_ms = None if as_of is None else millis_of(as_of)
    with opened(session) as store:
        states = [
            store.get_state(reference if at_ms is None else _as_of(store, reference, at_ms))
            for reference in references
        ]
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


def _as_of(store: Store, reference: str, at_ms: int) -> str:
    """The version of a PTK that knows nothing from after a time of the events; one that is named by
    its number is taken as it is.
    """
    name, version = parse_reference(reference, None)
    if version is not None:
        return reference
    seconds = store.stream(store.ptk(name).stream).window_seconds
    ended = [
        state
        for state in store.states(name)
        if (state.window + 1) * seconds * 1000 <= at_ms and state.validation != "NOT_SHOWN"
    ]
    if not ended:
        raise Refused(
            "STATE_UNKNOWN",
            f"{name} has no version whose windows had ended by then: sage ptk versions {name} lists "
            "them",
            ptk=name,
        )
    return f"{name}@v{ended[-1].version}"
