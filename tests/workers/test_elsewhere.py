"""Workers of another kind come in by the adapters, and get jobs that can travel."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptkstore import Store
from ptkstore.engine.parts import Adapters
from ptkstore.workers.inline import InlineWorkers
from ptkstore.workers.protocol import KEEP_BYTES, TrainJob, TrainOutcome
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec


class Travelling(InlineWorkers):
    """Jobs go as bytes, as they would to another machine, with what workers get to open."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def train(
        self, jobs: Sequence[TrainJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[TrainOutcome]:
        self.sent.append(pickle.dumps(list(jobs)))
        yield from super().train(pickle.loads(self.sent[-1]), keep_bytes)

    def close(self) -> None:
        self.closed = True
        super().close()


def test_a_window_trains_in_workers_of_another_kind(tmp_path: Path) -> None:
    workers = Travelling()
    with Store(tmp_path, adapters=Adapters(workers=lambda: workers)) as store:
        store.create_stream(spec())
        for name in ("a", "b"):
            store.register(name, stream="rides", kind="statistics", config=config(), target=0.3)
        store.push("rides", day(0))
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert [line.outcome for line in cycle.trained] == ["PUBLISHED"] * 2
        assert store.ptk("a").latest_version == 1
    (sent,) = workers.sent
    first, second = pickle.loads(sent)
    assert first.opener is second.opener, "what opens the blocks travels once"
    assert workers.closed
