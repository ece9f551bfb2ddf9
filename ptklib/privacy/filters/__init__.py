"""Privacy filters: which costs one point may still carry.

`make_filter` builds the filter of a policy, `filter_from_json` the one a journal recorded. ``base``
states the contract.

===============  ========================================================  =========================
composition      loss of a point                                           costs
===============  ========================================================  =========================
pure, basic      [epsilon nano, delta atto]                                those with a basic form
strong           [linear nano, square pico, delta atto]                    those with a basic form
renyi            [one per order, nano ..., slack atto]                     all
gaussian         [mu^2 nano]                                               those with a Gaussian-DP bound
===============  ========================================================  =========================
"""

from __future__ import annotations

from typing import Any

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.privacy.filters.base import LOSS_LIMIT, Demand, Filter
from ptklib.privacy.filters.basic import BasicFilter
from ptklib.privacy.filters.gaussian import GaussianFilter
from ptklib.privacy.filters.renyi import RenyiFilter
from ptklib.privacy.filters.strong import StrongFilter

__all__ = ["COMPOSITIONS", "LOSS_LIMIT", "Demand", "Filter", "filter_from_json", "make_filter"]

_Kind = type[BasicFilter] | type[StrongFilter] | type[RenyiFilter] | type[GaussianFilter]
_ALL: tuple[_Kind, ...] = (BasicFilter, StrongFilter, RenyiFilter, GaussianFilter)
_KINDS: dict[str, _Kind] = {name: kind for kind in _ALL for name in kind.compositions}
COMPOSITIONS = tuple(sorted(_KINDS))


def make_filter(composition: str, epsilon: Number, delta: Number = 0) -> Filter:
    """The filter that keeps everything (epsilon, delta)-DP under the named composition."""
    return _kind(composition).of(composition, epsilon_exact(epsilon), delta_exact(delta))


def filter_from_json(body: dict[str, Any]) -> Filter:
    """Read the form of `Filter.as_json`: recorded capacities count, nothing is recomputed."""
    if not isinstance(body, dict):
        raise InvalidInput(
            "FILTER_INVALID", f"a filter must be an object, got {type(body).__name__}"
        )
    return _kind(body.get("composition")).from_json(body)


def _kind(composition: object) -> _Kind:
    if not isinstance(composition, str) or composition not in _KINDS:
        raise InvalidInput(
            "POLICY_INVALID_COMPOSITION",
            f"composition must be one of {', '.join(COMPOSITIONS)}, got {composition!r}",
            field="composition",
        )
    return _KINDS[composition]
