"""What a worker does to test states: the records of a test slice go into one noisy number.

Failures are told as those of trainings are: texts may carry data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import safetensors.numpy

from ptklib.encoding.canonical import canonical
from ptklib.encoding.error_place import failure_of
from ptklib.validators.betting import LossTest
from ptklib.validators.loss import validate_loss
from ptkstore.workers.protocol import (
    KEEP_BYTES,
    PTK_FAILED,
    STOPPED,
    ValidateJob,
    ValidateOutcome,
)
from ptkstore.workers.train import JobRecords, ptk_of_job

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
    records.touched = False
    try:
        ptk = ptk_of_job(job.kind, canonical(job.config))
        if records.opener is not None:
            for start, stop in job.ranges:
                records.opener.require(start, stop)
        arrays = safetensors.numpy.load(job.state)
        test = LossTest.from_json(job.test)
        verdict = validate_loss(test, ptk, arrays, records.within(ptk.columns(), job.ranges))
        return ValidateOutcome(job.name, verdict)
    except Exception as error:  # whatever a PTK raises may carry data
        detail = STOPPED if isinstance(error, MemoryError) else failure_of(error)
        return ValidateOutcome(job.name, None, PTK_FAILED if records.touched else detail, detail)
