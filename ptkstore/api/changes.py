"""Changes of a store: looked at by a what-if, carried out by an approval or by applying them.

One value and one JSON form (`Changes.as_json`) for all of them: streams that are made, PTKs that
are added, given another configuration, target or epsilon, and retired; what streams use of their
windows;
and promises that are only looked at.
Reasons: CHANGE_INVALID, and those of streams; errors say which field they are about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ptklib.encoding.error_fields import inside
from ptklib.errors import InvalidInput
from ptkstore.api.goal import Goal
from ptkstore.api.over import ALL

if TYPE_CHECKING:
    from ptklib.privacy.amounts import Number
    from ptkstore.api.stream_spec import StreamSpec

__all__ = ["AddedPtk", "Changes"]


@dataclass(frozen=True, kw_only=True)
class AddedPtk:
    """A PTK that is not registered yet. Without a ``stream`` it is for the one that is asked
    about.
    """

    name: str
    kind: str
    config: Mapping[str, Any]
    target: float | None = None
    stream: str = ""
    train_every: int = 1
    over: str = ALL
    epsilon: Number | None = None

    @property
    def goal(self) -> Goal:
        """Its target, or its epsilon. Reason: TARGET_OR_EPSILON."""
        return Goal.of(self.target, self.epsilon)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values. What older servers do not know is left out where it says nothing new."""
        body = {
            "name": self.name,
            "stream": self.stream,
            "kind": self.kind,
            "config": dict(self.config),
            "target": self.target,
            "train_every": self.train_every,
        }
        if self.over != ALL:
            body["over"] = self.over
        if self.epsilon is not None:
            body["epsilon"] = self.goal.epsilon
            del body["target"]
        return body

    @classmethod
    def from_json(cls, body: Any) -> AddedPtk:
        """Read `as_json` back."""
        _require(isinstance(body, dict), "", "an object")
        for name in ("name", "stream", "kind", "over", "epsilon"):
            _require(isinstance(body.get(name, ""), str), name, "text")
        _require({"name", "kind", "config"} <= body.keys(), "", "complete")
        _require(isinstance(body["config"], dict), "config", "an object")
        if "target" in body or "epsilon" not in body:
            _require(_is_number(body.get("target")), "target", "a number")
        _require(type(body.get("train_every", 1)) is int, "train_every", "a whole number")
        _require(body.keys() <= {*cls.__dataclass_fields__}, "", "without unknown fields")
        target = float(body["target"]) if "target" in body else None
        return cls(**{**body, "target": target})


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What to change; what is left out stays as it is."""

    add: tuple[AddedPtk, ...] = ()
    remove: tuple[str, ...] = ()
    retarget: Mapping[str, float] = field(default_factory=dict)
    epsilon: Number | None = None
    delta: Number | None = None
    composition: str | None = None
    n_max: int | None = None
    streams: tuple[StreamSpec, ...] = ()
    reconfigure: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What streams take of their windows from now on, by stream: minimum or surplus.
    use: Mapping[str, str] = field(default_factory=dict)
    # PTKs that are to be of best effort, or to have another epsilon, by name.
    best_effort: Mapping[str, Number] = field(default_factory=dict)

    @property
    def goals(self) -> dict[str, Goal]:
        """The PTKs that get another target or epsilon. Reasons: those of goals."""
        targets = {name: Goal.of(target, None) for name, target in self.retarget.items()}
        return targets | {name: Goal.of(None, level) for name, level in self.best_effort.items()}

    @property
    def looks_only(self) -> bool:
        """True where a promise is other than the stream's, which never changes."""
        terms = (self.epsilon, self.delta, self.composition, self.n_max)
        return any(term is not None for term in terms)

    @property
    def of_ptks(self) -> bool:
        """True where any PTK would change."""
        changed = self.retarget or self.reconfigure or self.best_effort
        return bool(self.add or self.remove or changed)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; what is left out is left out."""
        body: dict[str, Any] = {
            "streams": [spec.as_json() for spec in self.streams],
            "add": [added.as_json() for added in self.add],
            "remove": list(self.remove),
            "retarget": dict(self.retarget),
            "reconfigure": {name: dict(config) for name, config in self.reconfigure.items()},
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": None if self.delta is None else str(self.delta),
            "composition": self.composition,
            "n_max": self.n_max,
            "use": dict(self.use),
            "best_effort": {
                name: Goal.of(None, epsilon).epsilon for name, epsilon in self.best_effort.items()
            },
        }
        return {name: value for name, value in body.items() if value or value == 0}

    @classmethod
    def from_json(cls, body: Any) -> Changes:
        """Read `as_json` back."""
        from ptkstore.api.stream_spec import USES, StreamSpec

        _require(isinstance(body, dict), "", "an object")
        _require(body.keys() <= {*cls.__dataclass_fields__}, "", "without unknown fields")
        for name in ("streams", "add", "remove"):
            _require(isinstance(body.get(name, []), list), name, "a list")
        for name in ("retarget", "reconfigure", "use", "best_effort"):
            _require(isinstance(body.get(name, {}), dict), name, "an object")
        streams, added = [], []
        for place, spec in enumerate(body.get("streams", ())):
            with inside("streams", place):
                streams.append(StreamSpec.from_json(spec))
        for place, ptk in enumerate(body.get("add", ())):
            with inside("add", place):
                added.append(AddedPtk.from_json(ptk))
        removed, targets = body.get("remove", []), body.get("retarget", {})
        _require(all(isinstance(name, str) for name in removed), "remove", "names")
        _require(all(map(_is_number, targets.values())), "retarget", "numbers by name")
        levels = body.get("best_effort", {})
        _require(
            all(isinstance(level, str) for level in levels.values()),
            "best_effort",
            "epsilons by name",
        )
        uses = body.get("use", {})
        _require(all(use in USES for use in uses.values()), "use", f"one of {', '.join(USES)}")
        configs = body.get("reconfigure", {})
        _require(
            all(isinstance(config, dict) for config in configs.values()), "reconfigure", "objects"
        )
        terms = {name: body.get(name) for name in ("epsilon", "delta", "composition", "n_max")}
        return cls(
            streams=tuple(streams),
            add=tuple(added),
            remove=tuple(removed),
            retarget={name: float(target) for name, target in targets.items()},
            reconfigure=configs,
            use=uses,
            best_effort=levels,
            **terms,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool, name: str, must: str) -> None:
    if not holds:
        what = name or "a change"
        raise InvalidInput("CHANGE_INVALID", f"{what} must be {must}", **_about(name))


def _about(name: str) -> dict[str, str]:
    return {"field": name} if name else {}
