"""The kinds of PTK that are installed: entry points of the group ``ptklib.ptks``, read once.

No code travels: a PTK is registered by the name of a kind installed here and a JSON configuration.
The table is frozen at first use, so that a process means the same by a kind for as long as it
lives.

Reasons: PTK_KIND_UNKNOWN (no such kind), PTK_KIND_INVALID (an entry point that is no PTK, or not of
the kind it is named for).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, TypeVar

from ptklib.encoding.error_fields import inside
from ptklib.encoding.nesting import MAX_NESTING, too_deep
from ptklib.errors import InvalidInput
from ptklib.ptk import Ptk

__all__ = ["GROUP", "installed", "kinds", "make"]

Kind = TypeVar("Kind", bound=Ptk)

GROUP = "ptklib.ptks"


@cache
def kinds() -> Mapping[str, type[Ptk]]:
    """Every installed kind by its name."""
    return installed(GROUP, Ptk)  # type: ignore[type-abstract]


def installed(group: str, base: type[Kind]) -> Mapping[str, type[Kind]]:
    """What the entry points of a group name: subclasses of ``base``, by their kinds. Read anew."""
    types: dict[str, type[Kind]] = {}
    for entry in sorted(
        entry_points(group=group), key=lambda entry_point: (entry_point.name, entry_point.value)
    ):
        kind = entry.load()
        if not (isinstance(kind, type) and issubclass(kind, base)) or kind.kind != entry.name:
            raise InvalidInput(
                "PTK_KIND_INVALID",
                f"entry point {entry.name!r} of {group} must be a {base.__name__} of that kind, "
                f"got {entry.value}",
            )
        if types.setdefault(entry.name, kind) is not kind:
            raise InvalidInput(
                "PTK_KIND_INVALID", f"kind {entry.name!r} is installed twice: remove one package"
            )
    return MappingProxyType(types)


def make(kind: str, config: Mapping[str, Any]) -> Ptk:
    """The PTK of an installed kind with a JSON configuration."""
    known = kinds()
    if kind not in known:
        raise InvalidInput(
            "PTK_KIND_UNKNOWN",
            f"kind must be one of {sorted(known)}, got {kind!r:.60}",
            kind=kind,
            field="kind",
        )
    if too_deep(config):
        raise InvalidInput(
            "CONFIG_INVALID",
            f"a configuration must be nested at most {MAX_NESTING} levels deep",
            field="config",
        )
    with inside("config"):
        return known[kind].from_json(config)
