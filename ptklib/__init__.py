"""ptklib: differentially private feature models, with no service anywhere.

::

    from ptklib import IntegerRange, State, Statistics, featurize

What is named here is imported when it is first used, so ``import ptklib`` costs nothing. Below it,
lowest first: `errors`, `encoding` (bytes with one spelling), `privacy` (amounts, costs, filters,
exact noise, mechanisms), `ledger` (the book of charges as a pure state machine), the contract
(`ptk`, `columns`, `config`, `registry`, `state`, `frames`, `features`, `serving`), `ptks` (a
package for each kind), `models` (predictors, a package for each family), `validators` (is what a
state promises there?), `export` and `sklearn` (states elsewhere), `testing` (`check_ptk` and its
tools), `auditing`.
"""

# As type checkers read it; `typing` itself is not imported, so that this import is free.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
    from ptklib.errors import SageError
    from ptklib.features import featurize
    from ptklib.models.linear import LinearRegression
    from ptklib.models.logistic import LogisticRegression
    from ptklib.models.mlp import MlpClassifier, MlpRegressor
    from ptklib.models.softmax import SoftmaxRegression
    from ptklib.ptk import Ptk
    from ptklib.ptks.additive import Additive
    from ptklib.ptks.binned.codes import Number
    from ptklib.ptks.clusters import Clusters
    from ptklib.ptks.counts import Counts
    from ptklib.ptks.covariance import Covariance
    from ptklib.ptks.embeddings import Embeddings
    from ptklib.ptks.forest import Forest
    from ptklib.ptks.interactions import Interactions
    from ptklib.ptks.quantiles import Quantiles
    from ptklib.ptks.ratios import Ratios
    from ptklib.ptks.statistics import Statistics
    from ptklib.ptks.tables.hashing import Hashed
    from ptklib.sklearn import (
        DPLinearRegression,
        DPLogisticRegression,
        DPMLPClassifier,
        DPMLPRegressor,
        PtkTransformer,
    )
    from ptklib.state import State
    from ptklib.testing.model_checks import check_model
    from ptklib.testing.ptk_checks import check_ptk

_HOMES = {
    "Additive": "ptklib.ptks.additive",
    "Bins": "ptklib.columns.keys",
    "Categories": "ptklib.columns.keys",
    "Clusters": "ptklib.ptks.clusters",
    "Counts": "ptklib.ptks.counts",
    "Covariance": "ptklib.ptks.covariance",
    "DPLinearRegression": "ptklib.sklearn",
    "DPLogisticRegression": "ptklib.sklearn",
    "DPMLPClassifier": "ptklib.sklearn",
    "DPMLPRegressor": "ptklib.sklearn",
    "Embeddings": "ptklib.ptks.embeddings",
    "Forest": "ptklib.ptks.forest",
    "Hashed": "ptklib.ptks.tables.hashing",
    "IntegerRange": "ptklib.columns.keys",
    "Interactions": "ptklib.ptks.interactions",
    "LinearRegression": "ptklib.models.linear",
    "LogisticRegression": "ptklib.models.logistic",
    "MlpClassifier": "ptklib.models.mlp",
    "MlpRegressor": "ptklib.models.mlp",
    "Number": "ptklib.ptks.binned.codes",
    "Ptk": "ptklib.ptk",
    "PtkTransformer": "ptklib.sklearn",
    "Quantiles": "ptklib.ptks.quantiles",
    "Ratios": "ptklib.ptks.ratios",
    "SageError": "ptklib.errors",
    "SoftmaxRegression": "ptklib.models.softmax",
    "State": "ptklib.state",
    "Statistics": "ptklib.ptks.statistics",
    "TimePart": "ptklib.columns.keys",
    "check_model": "ptklib.testing.model_checks",
    "check_ptk": "ptklib.testing.ptk_checks",
    "featurize": "ptklib.features",
}

__all__ = [
    "Additive",
    "Bins",
    "Categories",
    "Clusters",
    "Counts",
    "Covariance",
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "Embeddings",
    "Forest",
    "Hashed",
    "IntegerRange",
    "Interactions",
    "LinearRegression",
    "LogisticRegression",
    "MlpClassifier",
    "MlpRegressor",
    "Number",
    "Ptk",
    "PtkTransformer",
    "Quantiles",
    "Ratios",
    "SageError",
    "SoftmaxRegression",
    "State",
    "Statistics",
    "TimePart",
    "check_model",
    "check_ptk",
    "featurize",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
