"""The nine steps of a window, in their order, and those of them that are done.

Each holds what later steps need, so that a restart goes on after the last one with the same
numbers. All of it is public or DP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

from ptkstore.api.views import TrainedLine
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import ProfiledPtk, TrainedPtk, ValidatedPtk
from ptkstore.engine.steps.step import Step
from ptkstore.metadata import rows

__all__ = [
    "STEPS",
    "Done",
    "Expired",
    "Notified",
    "Planned",
    "Profiled",
    "Published",
    "Reserved",
    "Sealed",
    "Trained",
    "Validated",
]

Part = TypeVar("Part", bound=Step)


@dataclass(frozen=True)
class _ByName(Generic[Part]):
    """What became of PTKs, by name. The body has that of each; without one there was none."""

    STEP: ClassVar[str]
    PART: ClassVar[type[Any]]

    ptks: Mapping[str, Part] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {name: ptk.as_json() for name, ptk in self.ptks.items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Self:
        """Read `as_json` back."""
        return cls({name: cls.PART.from_json(ptk) for name, ptk in (body or {}).items()})


@dataclass(frozen=True)
class Sealed:
    """The blocks of the window and its DP number of records, which is 0 where the count was charged
    and lost.
    """

    STEP: ClassVar[str] = "sealed"

    blocks: tuple[str, ...]
    dp_records: int
    count_lost: bool = False

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {
            "blocks": list(self.blocks),
            "dp_records": self.dp_records,
            "count_lost": self.count_lost,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Sealed:
        """Read `as_json` back."""
        return cls(tuple(body["blocks"]), body["dp_records"], body.get("count_lost", False))


@dataclass(frozen=True)
class Profiled(_ByName[ProfiledPtk]):
    """What became of the PTKs that were profiled, by name."""

    STEP: ClassVar[str] = "profiled"
    PART: ClassVar[type[ProfiledPtk]] = ProfiledPtk


@dataclass(frozen=True)
class Planned:
    """The plan, as JSON and for people, and who of those who are due trains; who is left out, why,
    and since which window.
    """

    STEP: ClassVar[str] = "planned"

    plan: Mapping[str, Any]
    coordinate: int | None
    capacity: int | None
    view: Mapping[str, Any]
    assigned: tuple[Assigned, ...]
    due: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    left_out_since: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The body; that of the plan's own row as well, which outlives the cycle."""
        return {
            "plan": self.plan,
            "coordinate": self.coordinate,
            "capacity": self.capacity,
            "view": self.view,
            "assigned": [ptk.as_json() for ptk in self.assigned],
            "due": list(self.due),
            "left_out": dict(self.left_out),
            "left_out_since": dict(self.left_out_since),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Planned:
        """Read `as_json` back. Cycles that earlier versions planned do not say who was left out."""
        return cls(
            plan=body.get("plan") or {},
            coordinate=body.get("coordinate"),
            capacity=body.get("capacity"),
            view=body.get("view") or {},
            assigned=tuple(Assigned.from_json(ptk) for ptk in body.get("assigned", ())),
            due=tuple(body.get("due", ())),
            left_out=body.get("left_out", {}),
            left_out_since=body.get("left_out_since", {}),
        )


@dataclass(frozen=True)
class Reserved:
    """Whether the ledger took the charges of the plan, all of them; if not, why."""

    STEP: ClassVar[str] = "reserved"

    reserved: bool
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {"reserved": self.reserved} | ({"reason": self.reason} if self.reason else {})

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Reserved:
        """Read `as_json` back."""
        told = body or {}
        return cls(told.get("reserved", True), told.get("reason", ""))


@dataclass(frozen=True)
class Trained(_ByName[TrainedPtk]):
    """What became of the PTKs that were due, by name."""

    STEP: ClassVar[str] = "trained"
    PART: ClassVar[type[TrainedPtk]] = TrainedPtk


@dataclass(frozen=True)
class Validated(_ByName[ValidatedPtk]):
    """What became of the tests of new states, by name. Who is not there needed none."""

    STEP: ClassVar[str] = "validated"
    PART: ClassVar[type[ValidatedPtk]] = ValidatedPtk


@dataclass(frozen=True)
class Published:
    """The new versions, by PTK."""

    STEP: ClassVar[str] = "published"

    versions: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, int]:
        """The body."""
        return dict(self.versions)

    @classmethod
    def from_json(cls, body: Mapping[str, int] | None) -> Published:
        """Read `as_json` back."""
        return cls(dict(body or {}))


@dataclass(frozen=True)
class Notified:
    """Events were handed to the bus."""

    STEP: ClassVar[str] = "notified"

    def as_json(self) -> None:
        """No body."""

    @classmethod
    def from_json(cls, _body: object) -> Notified:
        """Whatever there is."""
        return cls()


@dataclass(frozen=True)
class Expired:
    """The blocks whose keys and files were destroyed."""

    STEP: ClassVar[str] = "expired"

    blocks: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The body."""
        return {"expired": list(self.blocks)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Expired:
        """Read `as_json` back."""
        return cls(tuple((body or {}).get("expired", ())))


STEPS = (Sealed, Profiled, Planned, Reserved, Trained, Validated, Published, Notified, Expired)


@dataclass(frozen=True)
class Done:
    """The steps of a cycle that are done: their names in the order they were written, and what they
    say to people. ``view`` is that of the plan, empty before there is one: the rest of a plan is
    long, and a page has a thousand cycles.
    """

    names: tuple[str, ...] = ()
    sealed: Sealed | None = None
    profiled: Profiled | None = None
    view: Mapping[str, Any] = field(default_factory=dict)
    reserved: Reserved | None = None
    trained: Trained | None = None
    validated: Validated | None = None

    @classmethod
    def of(cls, written: Iterable[rows.StepRow]) -> Done:
        """From the rows of a cycle's main steps."""
        bodies = {row.step: row.body for row in written}

        def told(kind: type[Any]) -> Any:
            return kind.from_json(bodies[kind.STEP]) if kind.STEP in bodies else None

        return cls(
            names=tuple(bodies),
            sealed=told(Sealed),
            profiled=told(Profiled),
            view=(bodies.get(Planned.STEP) or {}).get("view") or {},
            reserved=told(Reserved),
            trained=told(Trained),
            validated=told(Validated),
        )

    def lines(self) -> tuple[TrainedLine, ...]:
        """What became of the training of every PTK that was due, by name."""
        trained = self.trained.ptks if self.trained is not None else {}
        verdicts = self.validated.ptks if self.validated is not None else {}
        return tuple(_judged(ptk.line, verdicts.get(name)) for name, ptk in sorted(trained.items()))


def _judged(line: TrainedLine, validated: ValidatedPtk | None) -> TrainedLine:
    if validated is None:
        return line
    return replace(line, validation=validated.verdict, reason=line.reason or validated.reason)
