"""The bench: where attempts are charged and run. A pipeline says what to do; a bench charges,
opens, runs and gives back.

The treaty ----------
* ``offer`` is made of public and DP numbers: what each block has left for this pipeline, after what
  its trail has spent and what the book of the stream allows.
* ``attempt`` reserves both charges of a job, of training and of its test, or none (REFUSED, and
  nothing was read). Each is spent, durably, before its records are opened. Whatever happens
  afterwards it stays spent; a failure is told as one word, for what raised may carry data.
* Nothing but the answer leaves: the arrays of the state, and what the test or look released.

Amounts of an attempt: the PTK at ``epsilon`` and the pipeline's delta on the tags of training, and
a Laplace release at ``epsilon`` on those of looks or tests. No unit is on two sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from ptklib.ledger.slices import TagRange
from ptklib.pipelines.attempts import LOOK, Offered, Trail
from ptklib.pipelines.pipeline import Pipeline
from ptklib.privacy.costs import Cost
from ptklib.ptk import Arrays
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import LossInterval, ToldLosses
from ptklib.validators.verdict import LossVerdict

__all__ = ["FAILURE", "AttemptAnswer", "Job", "PipelineBench"]

# All that is told of what raised after records were opened.
FAILURE = "PTK_FAILED"


@dataclass(frozen=True)
class Job:
    """One attempt to be charged and run."""

    pipeline: Pipeline
    number: int
    purpose: str
    epsilon: Fraction
    blocks: tuple[str, ...]
    test: LossTest | LossInterval

    @property
    def key(self) -> str:
        """Names the attempt in the book, for good."""
        return f"{self.pipeline.name}/attempt-{self.number}"

    @property
    def judged_on(self) -> TagRange:
        """The tags of its test, or of its look."""
        split = self.pipeline.split
        return split.looking if self.purpose == LOOK else split.testing

    def training_cost(self, records_per_unit: int) -> Cost:
        """What training is charged, to the tags of training."""
        return self.pipeline.ptk.cost(
            self.epsilon, Fraction(self.pipeline.delta), records_per_unit=records_per_unit
        )


@dataclass(frozen=True)
class AttemptAnswer:
    """What an attempt released; ``failure`` where there is nothing, and whether it was charged."""

    arrays: Arrays | None = None
    told: LossVerdict | ToldLosses | None = None
    failure: str = ""
    charged: bool = True


class PipelineBench(Protocol):
    """What a pipeline needs of the world. The treaty is in the module."""

    @property
    def stream(self) -> str:
        """The name of the stream."""

    @property
    def unit(self) -> str:
        """The unit of its promise."""

    @property
    def records_per_unit(self) -> int:
        """How many records a unit has at most."""

    def offer(self, pipeline: Pipeline, trail: Trail) -> Offered:
        """What there is now."""

    def attempt(self, job: Job) -> AttemptAnswer:
        """Charge, open, run."""
