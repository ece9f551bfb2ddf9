"""What configurations and states of kinds that learn a label from binned inputs must keep.

Reasons: CONFIG_INVALID, PTK_MISMATCH, and those of `fixed_point` and `keys`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ptklib.columns.keys import Categories, TimePart
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.ptk import Arrays
from ptklib.ptks.binned.codes import MAX_BINS, Feature
from ptklib.ptks.binned.target import Classes, Steps, Target

__all__ = ["check_counts", "check_inputs", "check_target", "target_of"]


def check_inputs(inputs: tuple[Feature, ...], label: str, *, most: int) -> None:
    """One to ``most`` inputs that differ, of not too many bins, none of them the label."""
    count = len(inputs)
    demand(1 <= count <= most, f"inputs must be 1 to {most}, got {count}", field="inputs")
    # What is there again tells nothing new, and each takes memory for every record.
    twice = len({_name(input_) for input_ in inputs}) < count
    demand(
        not twice,
        "inputs must differ: a column may be there once for each kind of input, or part of a time",
        field="inputs",
    )
    for input_ in inputs:
        demand(
            input_.size <= MAX_BINS,
            f"input {input_.column!r} must have at most {MAX_BINS} bins, got {input_.size}",
            field="inputs",
        )
        demand(input_.column != label, f"label {label!r} must not be an input too", field="label")


def check_target(
    label: str,
    classes: tuple[str, ...] | tuple[int, ...] | None,
    lower: float | None,
    upper: float | None,
) -> None:
    """Either classes, two or more, or bounds."""
    if classes is None:
        bounds = "classes, or lower and upper, must be given: what is learned is public"
        demand(lower is not None and upper is not None, bounds, field="lower")
        # Made for its checks.
        low, high = Fraction(repr(lower)), Fraction(repr(upper))
        FixedPoint(low, high, max(abs(low), abs(high)))
        return
    demand(
        lower is None and upper is None,
        "lower and upper must be left out where there are classes",
        field="lower",
    )
    demand(len(classes) >= 2, f"classes must be two or more, got {len(classes)}", field="classes")
    Categories(column=label, values=classes)


def check_counts(arrays: Arrays, *counts: str) -> None:
    """The arrays of these names, where they are there, windows and variance are in range
    (PTK_MISMATCH).
    """
    whole = [arrays[name] for name in counts if name in arrays]
    fits = all(np.all((count >= -LIMIT) & (count <= LIMIT)) for count in whole)
    if not fits or not 1 <= arrays["windows"][0] <= LIMIT or not arrays["variance"][0] > 0:
        raise InvalidInput(
            "PTK_MISMATCH", "counts must be within 2**60, windows at least 1, variance above 0"
        )


def target_of(
    label: str,
    classes: tuple[str, ...] | tuple[int, ...] | None,
    lower: float | None,
    upper: float | None,
) -> Target:
    """What is learned, of a configuration that was checked."""
    if classes is not None:
        return Classes(label, classes)
    assert lower is not None
    assert upper is not None
    return Steps(label, lower, upper)


def _name(feature: Feature) -> tuple[str, ...]:
    """What tells inputs apart."""
    return (
        (feature.column, feature.kind, feature.part)
        if isinstance(feature, TimePart)
        else (feature.column, feature.kind)
    )
