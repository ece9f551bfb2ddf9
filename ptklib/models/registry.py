"""The models that are installed: entry points of the group ``ptklib.models``, read once.

A model is installed twice: here, so that whoever wants a predictor finds it, and in the group of
PTKs (`ptklib.registry`), by the same name, so that a store takes it.

Reasons: PTK_KIND_INVALID (an entry point that is no model, or not of the kind it is named for).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ptklib.models.model import Model
from ptklib.registry import installed

__all__ = ["GROUP", "model_kinds"]

GROUP = "ptklib.models"


@cache
def model_kinds() -> Mapping[str, type[Model]]:
    """Every installed model by its name."""
    return installed(GROUP, Model)  # type: ignore[type-abstract]
