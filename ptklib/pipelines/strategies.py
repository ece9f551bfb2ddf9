"""The strategies of privacy-adaptive training that there are, by their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ptklib.pipelines.aggressive import Aggressive
from ptklib.pipelines.conserve import Conserve
from ptklib.pipelines.planned import PlanAhead
from ptklib.pipelines.strategy import Strategy

__all__ = ["STRATEGIES"]

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType(
    {"aggressive": Aggressive, "conserve": Conserve, "planned": PlanAhead}
)
