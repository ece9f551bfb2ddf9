"""Worker processes keep the treaty of workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ptkstore.workers.processes import ProcessWorkers
from ptkstore.workers.protocol import PTK_FAILED, Workers
from tests.workers.jobs import profile_job
from tests.workers.suite import ApartSuite, WorkersSuite

MIB = 1 << 20


class TestProcesses(WorkersSuite, ApartSuite):
    @pytest.fixture
    def workers(self) -> Iterator[Workers]:
        workers = ProcessWorkers(2, 900 * MIB)
        yield workers
        workers.close()
        assert not workers._processes

    def test_a_job_that_does_not_even_fit_has_failed(self) -> None:
        """That is no accident: the next window would not do either."""
        workers = ProcessWorkers(1, 8 * MIB)
        large = profile_job("large", *[1] * (4 * MIB))
        try:
            (outcome,) = workers.profile([large])
            assert outcome.answer.failure == PTK_FAILED
        finally:
            workers.close()
