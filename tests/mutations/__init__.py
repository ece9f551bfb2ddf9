"""Break the code that keeps the promise on purpose, one line at a time, and see that the tests
notice.

Every mutation is a mistake somebody could make and that would leak, under-charge or lose: half a
sensitivity, epsilon for 1/epsilon, a rounding dropped or turned around, an exact path skipped, a
charge that comes after the data, a check of a grant or a role that is gone. Each names the one test
that must notice it; ``python -m tests.mutations`` runs them (`__main__`).
"""

from __future__ import annotations

from tests.mutations.accounting import OF_ACCOUNTING
from tests.mutations.engine import OF_ENGINE
from tests.mutations.gradients import OF_GRADIENTS
from tests.mutations.ledger import OF_LEDGER
from tests.mutations.mechanisms import OF_MECHANISMS
from tests.mutations.models import OF_MODELS
from tests.mutations.mutation import Mutation
from tests.mutations.predictors import OF_PREDICTORS
from tests.mutations.preparation import OF_PREPARATION
from tests.mutations.profiler import OF_PROFILER
from tests.mutations.streams import OF_STREAMS
from tests.mutations.totals import OF_TOTALS
from tests.mutations.trainings import OF_TRAININGS
from tests.mutations.validators import OF_VALIDATORS

__all__ = ["MUTATIONS", "Mutation"]

MUTATIONS: tuple[Mutation, ...] = (
    *OF_MECHANISMS,
    *OF_ACCOUNTING,
    *OF_TOTALS,
    *OF_TRAININGS,
    *OF_MODELS,
    *OF_PREDICTORS,
    *OF_GRADIENTS,
    *OF_PREPARATION,
    *OF_PROFILER,
    *OF_VALIDATORS,
    *OF_LEDGER,
    *OF_STREAMS,
    *OF_ENGINE,
)
