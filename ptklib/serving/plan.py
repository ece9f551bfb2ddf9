"""Serving plans: how each kind of PTK computes its features in the few steps of `ptklib.serving`.

A kind has a plan if its class has a method ``serving(arrays) -> ServingPlan``, or, of the kinds
that come with the library, if there is a module ``serving`` beside its class with ``plan(ptk,
arrays) -> ServingPlan``. Both are post-processing of DP arrays: free.

Reasons: EXPORT_UNSUPPORTED (a kind, or a configuration, without a plan).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.ptk import Arrays, Ptk

__all__ = ["ServingPlan", "plan_of"]


@dataclass(frozen=True, kw_only=True)
class ServingPlan:
    """Steps, and the arrays that they name with ``@``.

    The form of a step is in `ptklib.serving`.
    """

    inputs: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    outputs: tuple[tuple[str, str], ...]  # (feature, value)
    arrays: Mapping[str, NDArray[Any]]

    def as_json(self) -> dict[str, Any]:
        """The plan without the arrays."""
        return {
            "inputs": list(self.inputs),
            "steps": [dict(step) for step in self.steps],
            "outputs": [list(output) for output in self.outputs],
        }


def plan_of(ptk: Ptk, arrays: Arrays) -> ServingPlan:
    """The plan of a state; refuses a kind that has none, and says so."""
    own = getattr(ptk, "serving", None)
    if own is not None:
        made: ServingPlan = own(arrays)
        return made
    beside = f"{type(ptk).__module__.rpartition('.')[0]}.serving"
    if not beside.startswith("ptklib.ptks.") or importlib.util.find_spec(beside) is None:
        raise InvalidInput(
            "EXPORT_UNSUPPORTED",
            f"PTKs of kind {ptk.kind!r} have no serving plan: use featurize, or give the class a "
            "method `serving`",
            kind=ptk.kind,
        )
    plan: ServingPlan = importlib.import_module(beside).plan(ptk, arrays)
    return plan
