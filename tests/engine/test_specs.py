"""What is known of a stream is what is stored, read once for each time that it changes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ptkstore.api.stream_spec import MINIMUM, SURPLUS
from ptkstore.engine.specs import Specs
from ptkstore.metadata import Metadata
from tests.engine.small import spec


def test_what_is_stored_counts_and_is_read_once(tmp_path: Path) -> None:
    with Metadata.open(tmp_path / "meta.db") as metadata:
        first = dataclasses.replace(spec(), use=MINIMUM)
        with metadata.write() as tx:
            tx.streams.create("rides", first.as_json())
        specs = Specs(metadata)
        assert specs.current("rides") == first
        assert specs.current("rides") is specs["rides"]

        second = dataclasses.replace(first, use=SURPLUS)
        with metadata.write() as tx:  # as another process would
            tx.streams.set_spec("rides", second.as_json())
        assert specs["rides"] == first
        assert specs.current("rides") == second

        specs["rides"] = first  # of a change that was not written in the end
        assert specs.current("rides") == second
        del specs["rides"]
        assert specs["rides"] == second == specs.all()[0]
