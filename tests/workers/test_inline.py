"""Jobs in the engine's own process keep the treaty of workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ptkstore.workers.inline import InlineWorkers
from ptkstore.workers.protocol import Workers
from tests.workers.suite import WorkersSuite


class TestInline(WorkersSuite):
    @pytest.fixture
    def workers(self) -> Iterator[Workers]:
        workers = InlineWorkers()
        assert not workers.apart
        yield workers
        workers.close()
