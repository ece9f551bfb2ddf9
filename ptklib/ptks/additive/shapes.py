"""Names of inputs and of their bins, from the configuration alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.ptks.binned.codes import Feature, Number

__all__ = ["bin_names", "input_names"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def input_names(inputs: tuple[Feature, ...]) -> tuple[str, ...]:
    """The column, with the part of a time; with the kind too where a column is there more than
    once in that way.
    """
    plain = [
        f"{input_.column}_{input_.part}" if isinstance(input_, TimePart) else input_.column
        for input_ in inputs
    ]
    often = Counter(plain)
    return tuple(
        f"{name}_{input_.kind}" if often[name] > 1 else name
        for name, input_ in zip(plain, inputs, strict=True)
    )


def bin_names(feature: Feature) -> list[str]:
    """What each bin holds, the unknown one last."""
    return [*_known(feature), "unknown"]


def _known(feature: Feature) -> list[str]:
    if isinstance(feature, Number):
        width = (feature.upper - feature.lower) / feature.bins
        edges = [feature.lower + width * place for place in range(feature.bins)]
        return _between([*edges, feature.upper])
    if isinstance(feature, Bins):
        return _between(list(feature.edges))
    if isinstance(feature, Categories):
        return [str(value) for value in feature.values]
    if isinstance(feature, IntegerRange):
        return [str(feature.first + place) for place in range(feature.size)]
    return list(_DAYS) if feature.part == "weekday" else [f"{hour:02d}h" for hour in range(24)]


def _between(edges: list[float]) -> list[str]:
    return [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
