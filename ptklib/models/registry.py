"""The models that are installed: entry points of the group ``ptklib.models``, read once.

A model is installed twice: here, so that whoever wants a predictor finds it, and in the group of
PTKs (`ptklib.registry`), by the same name, so that a store takes it.

Reasons: PTK_KIND_INVALID (an entry point that is no model, or not of the kind it is named for).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

from ptklib.errors import InvalidInput
from ptklib.models.model import Model

__all__ = ["GROUP", "model_kinds"]

GROUP = "ptklib.models"


@cache
def model_kinds() -> Mapping[str, type[Model]]:
    """Every installed model by its name."""
    types: dict[str, type[Model]] = {}
    for entry in sorted(
        entry_points(group=GROUP), key=lambda entry_point: (entry_point.name, entry_point.value)
    ):
        kind = entry.load()
        if not (isinstance(kind, type) and issubclass(kind, Model)) or kind.kind != entry.name:
            raise InvalidInput(
                "PTK_KIND_INVALID",
                f"entry point {entry.name!r} must be a Model of that kind, got {entry.value}",
            )
        if types.setdefault(entry.name, kind) is not kind:
            raise InvalidInput(
                "PTK_KIND_INVALID", f"model {entry.name!r} is installed twice: remove one package"
            )
    return MappingProxyType(types)
