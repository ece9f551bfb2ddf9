"""What a worker does to test states: the records of a test slice go into one noisy number, or two
where nothing was promised.

Failures are told as those of trainings are: texts may carry data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import safetensors.numpy

from ptklib.ptk import Ptk
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import METHOD, LossInterval, ToldLosses
from ptklib.validators.loss import measure_loss, validate_loss
from ptklib.validators.verdict import LossVerdict
from ptkstore.workers.protocol import KEEP_BYTES, ValidateJob, ValidateOutcome
from ptkstore.workers.train import JobRecords, attempted

__all__ = ["validate_each"]


def validate_each(
    jobs: Sequence[ValidateJob], keep_bytes: int = KEEP_BYTES
) -> Iterator[ValidateOutcome]:
    """All jobs, in their order; one that fails does not stop the others. Jobs that share an opener
    share its records.
    """
    for _, together in groupby(jobs, key=lambda job: id(job.opener)):
        group = list(together)
        records = JobRecords(group[0].opener, group, keep_bytes)
        for job in group:
            yield _validate(records, job)


def _validate(records: JobRecords, job: ValidateJob) -> ValidateOutcome:
    def verdict_of(ptk: Ptk) -> LossVerdict | ToldLosses:
        arrays = safetensors.numpy.load(job.state)
        batches = records.within(ptk.columns(), job.ranges)
        if job.test["method"] == METHOD:
            return measure_loss(LossInterval.from_json(job.test), ptk, arrays, batches)
        return validate_loss(LossTest.from_json(job.test), ptk, arrays, batches)

    return ValidateOutcome(job.name, *attempted(records, job, verdict_of))
