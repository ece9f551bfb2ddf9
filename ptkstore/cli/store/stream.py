"""``sage stream``: create, list, push."""

from __future__ import annotations

from pathlib import Path

import click

from ptkstore.cli.groups import LazyGroup
from ptkstore.cli.output import Table, moment, show
from ptkstore.cli.progress import progress
from ptkstore.cli.session import Invocation, opened, pass_session, shared_options

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
    help="The producer's number of this push: the same one twice counts once.",
)
@shared_options
@pass_session
def push(session: Invocation, stream: str, file: Path, producer: str, seq: int | None) -> None:
    """Push the records of FILE into STREAM.

    FILE is .parquet, .csv or .arrow. The records are on disk, encrypted, when the command returns.
    With --seq, repeating a push after a failure is safe. Records that cannot be in the stream (a
    null where there must be none, or beyond the bounds of a stream that refuses those) are left
    out: all others are on disk, and the command ends with RECORDS_REFUSED, which says how many for
    which column, and the first row of each. How many records a stream holds is private, so no count
    is printed: see `sage budget show`.

    \b
    Examples:
      sage stream push rides rides.parquet
      sage stream push rides monday.csv --producer depot-3 --seq 17
    """
    from ptkstore.cli.files import conform, read_table

    with opened(session) as store, progress(f"pushing {file.name}"):
        schema = store.stream(stream).schema
        table = conform(read_table(file, schema), schema)
        watermark = store.push(stream, table, producer=producer, seq=seq)
    body = {
        "stream": stream,
        "file": str(file),
        "producer": producer,
        "seq": seq,
        "watermark_ms": watermark,
    }
    reached = "" if watermark is None else f"; sealed up to {moment(watermark)}"
    show(session, body, f"pushed {file} to {stream}{reached}")
