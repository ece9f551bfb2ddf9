"""``sage stream``: infer, create, list, check, push."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptklib.errors import InvalidInput, Refused
from ptkstore.api.references import is_address
from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, show
from ptkstore.cli.progress import progress
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options
from ptkstore.cli.store.resuming import FileProgress, begun, noted, pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from ptkstore.api.refused import RefusedTally
    from ptkstore.api.store import Store

__all__ = ["stream"]


@click.group(cls=LazyGroup)
@shared_options
def stream() -> None:
    """Streams: typed sequences of records with a privacy policy.

    \b
    Examples:
      sage stream list
      sage stream push rides rides.parquet
    """


@stream.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@shared_options
@pass_session
def create(session: Invocation, file: Path) -> None:
    """Create the stream that FILE (YAML or JSON) specifies.

    The file has the fields of one entry under `streams` in sage.yaml. A stream never changes once
    it is created.

    \b
    Example:
      sage stream create rides.yaml
    """
    from ptkstore.cli.project.declaration import read_stream
    from ptkstore.cli.project.document import Document

    spec = read_stream(Document.read(file))
    with opened(session, create=True) as store:
        store.create_stream(spec)
    show(session, spec, f"created {spec.name}")


@stream.command("list")
@shared_options
@pass_session
def list_streams(session: Invocation) -> None:
    """List all streams and what they promise.

    --json gives the whole specifications.

    \b
    Example:
      sage stream list --json
    """
    with opened(session) as store:
        specs = store.streams()
    rows = []
    for spec in specs:
        policy = spec.policy.as_json()
        rows.append(
            (
                spec.name,
                spec.unit,
                policy["epsilon"],
                policy["delta"],
                policy["composition"],
                spec.window_seconds,
            )
        )
    show(
        session,
        specs,
        Table(("stream", "unit", "epsilon", "delta", "composition", "window s"), rows),
        "" if specs else "no streams yet: declare one in sage.yaml and `sage apply`",
    )


@stream.command()
@click.argument("stream", metavar="STREAM")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--producer", default="default", show_default=True, help="Who pushes.")
@click.option(
    "--seq",
    type=click.IntRange(min=0),
    help="The producer's number of this push, instead of the note beside the file: the same one "
    "twice counts once.",
)
@click.option("--again", is_flag=True, help="Push the file once more, all of it.")
@shared_options
@pass_session
def push(
    session: Invocation, stream: str, file: Path, producer: str, seq: int | None, again: bool
) -> None:
    """Push the records of FILE into STREAM, once.

    FILE is .parquet, .csv, .jsonl or .arrow. The records are on disk, encrypted, when the command
    returns. How far a file is, is noted beside it (.sage-push.json): a push that was interrupted goes
    on where it was, and the same file counts once. Records that cannot be in the stream (a null where
    there must be none, or beyond the bounds of a stream that refuses those) are left out: all others
    are on disk, and the command ends with RECORDS_REFUSED, which says how many for which column, and
    the first row of each. How many records a stream holds is private, so no count is printed: see
    `sage budget show`. What else does not fit is told by column; `sage stream check` counts it, here.

    \b
    Examples:
      sage stream push rides rides.parquet
      sage stream push rides monday.csv --producer depot-3 --seq 17
    """
    from ptkstore.api.refused import RefusedTally
    from ptkstore.cli.files import conform, read_table
    from ptkstore.cli.store.quality import quality_of

    watermark, told = None, f"pushed {file} to {stream}"
    with opened(session) as store, progress(f"reading {file.name}") as tell:
        spec = store.stream(stream)
        table = conform(read_table(file, spec.schema), spec.schema)
        if not session.as_json:
            for quality in quality_of(table, spec):
                click.echo(f"note: {quality.told}", err=True)
        if not table.num_rows:
            told = f"{file} has no rows: nothing was pushed"
        elif seq is not None:
            watermark = store.push(stream, table, producer=producer, seq=seq)
        else:
            tally = RefusedTally()
            place = (
                str(session.path) if is_address(str(session.path)) else str(session.path.resolve())
            )
            state = begun(
                file, store=place, stream=stream, named=producer, rows=table.num_rows, anew=again
            )
            if state.whole:
                told = (
                    f"{file} is in {stream} already, and counts once: --again pushes it once more"
                )
            for number, (begin, rows) in enumerate(pieces(table.num_rows)):
                if number < state.done:
                    continue
                if tell is not None:
                    tell(f"pushing {file.name}: {begin / table.num_rows:.0%}")
                piece = table.slice(begin, rows)
                watermark = _piece(store, state, number, piece, begin, tally)
                state = noted(file, state, number + 1)
            tally.check()
    body = {
        "stream": stream,
        "file": str(file),
        "producer": producer,
        "seq": seq,
        "watermark_ms": watermark,
    }
    reached = "" if watermark is None else f"; sealed up to {moment(watermark)}"
    show(session, body, told + reached)


def _piece(
    store: Store,
    state: FileProgress,
    number: int,
    piece: pa.Table,
    begin: int,
    tally: RefusedTally,
) -> int | None:
    """Push one piece; what is refused of it is told at the end, for the others are durable."""
    from ptkstore.api.refused import RefusedRecords

    try:
        return store.push(state.stream, piece, producer=state.producer, seq=state.first + number)
    except Refused as error:
        if error.reason != "RECORDS_REFUSED":
            raise
        refused = error.details["refused"]
        bodies = refused if isinstance(refused, list | tuple) else ()
        tally.add((RefusedRecords(**dict(body)) for body in bodies), begin)
        return None


@stream.command()
@click.argument("stream", metavar="STREAM")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@shared_options
@pass_session
def check(session: Invocation, stream: str, file: Path) -> None:
    """Say what of FILE does not fit STREAM, and what a push would do.

    Nothing is pushed. The counts are of your own file and shown here alone: nothing is sent or kept.

    \b
    Example:
      sage stream check rides rides.parquet
    """
    from ptkstore.cli.files import conform, read_table
    from ptkstore.cli.store.quality import quality_of

    with opened(session) as store:
        spec = store.stream(stream)
    table = conform(read_table(file, spec.schema), spec.schema)
    faults = quality_of(table, spec)
    rows = [(fault.column, fault.fault, fault.rows, fault.becomes) for fault in faults]
    empty = f"{file} has no rows: a push would do nothing"
    fits = f"all {table.num_rows:,} rows fit: sage stream push {stream} {file}"
    show(
        session,
        {"rows": table.num_rows, "faults": faults},
        Table(("column", "values", "rows", "a push"), rows),
        "" if rows else fits if table.num_rows else empty,
    )


@stream.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--name", default="", help="Of the stream. [default: that of the file]")
@click.option("--time", "time_column", default="", metavar="COLUMN", help="When a record happened.")
@click.option(
    "--bounds",
    multiple=True,
    metavar="COLUMN=LOW:HIGH",
    help="Public bounds of a column, known without looking. Repeatable.",
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="COLUMN=A,B,C",
    help="The public values of a column. Repeatable.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it.")
@shared_options
@pass_session
def infer(
    session: Invocation,
    files: tuple[str, ...],
    name: str,
    time_column: str,
    bounds: tuple[str, ...],
    domains: tuple[str, ...],
    output: Path | None,
) -> None:
    """Draft a stream and PTKs from FILE.

    FILE is .parquet, .csv, .jsonl or .arrow; several, or a pattern in quotes, are read as one. Names
    and types come from the file. Bounds, domains and the first day must be public: on a terminal they
    are asked for; what was proposed by looking at values is marked LOOKED AT in the draft.

    \b
    Examples:
      sage stream infer rides.parquet -o sage.yaml
      sage stream infer 'rides-*.csv' --bounds fare=0:100 --domain zone=airport,centre
    """
    from ptkstore.cli.output import write_text
    from ptkstore.cli.project.asking import drafted
    from ptkstore.cli.project.drafting import looked_at, project_text

    draft = drafted(files, name=name, time_column=time_column, bounds=bounds, domains=domains)
    text = project_text(draft, with_ptks=True)
    if output is not None:
        if output.exists():
            raise InvalidInput(
                "PROJECT_EXISTS",
                f"{output} must not be there: nothing was written",
                file=str(output),
            )
        write_text(str(output), text)
    if not session.as_json:
        for line in looked_at(draft):
            click.echo(f"looked at the data for {line}", err=True)
    show(
        session,
        {"yaml": text, "looked_at": looked_at(draft)},
        text if output is None else f"wrote {output}; next: sage apply",
    )
