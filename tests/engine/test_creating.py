"""A stream is made once, with one promise, whatever a crash left of the first try."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptklib.errors import Refused
from ptklib.ledger.policy import Policy
from ptkstore import Store
from tests.engine.small import spec


def test_what_a_crash_left_is_taken_up_with_the_same_promise_alone(tmp_path: Path) -> None:
    with Store(tmp_path, workers=0) as store:
        # As after a crash between the ledger and the metadata.
        store.parts.ledger.create_stream("rides", spec().policy)
    with Store(tmp_path, workers=0) as store:
        with pytest.raises(Refused, match="STREAM_EXISTS") as refusal:
            store.create_stream(spec(policy=Policy(epsilon=2, delta="1e-6")))
        assert "another promise" in str(refusal.value)
        assert store.streams() == []
        store.create_stream(spec())
        assert store.parts.ledger.streams() == {"rides": spec().policy}
        with pytest.raises(Refused, match="STREAM_EXISTS"):
            store.create_stream(spec())
