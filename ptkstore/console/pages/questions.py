"""A question of What if, as the query of a URL and as fields of a form: every question has an
address and needs no script.

PTKs are retargeted (``retarget``, ``to``), dropped (``drop``), forked (``fork``, ``name``,
``fork_to``) and added (``add``, ``kind``, ``config``, ``add_to``), each as often as one likes;
``epsilon``, ``delta``, ``composition`` and ``n_max`` are other terms to look at; ``use`` is what the
stream would use of its windows, which can be applied. What is wrong is told beside its field.
Reasons: VALUE_INVALID, JSON_INVALID, PTK_UNKNOWN, PTK_RETIRED, and those of a promise.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

from ptklib.encoding.error_fields import field_of
from ptklib.errors import InvalidInput, Refused, SageError
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.stream_spec import USES, StreamSpec
from ptkstore.api.views import PtkView

__all__ = ["KINDS", "MOST", "TERMS", "Question", "TypedChange", "Wrong"]

Pairs = Sequence[tuple[str, str]]
# The fields of each kind of change; the first names the PTK.
KINDS: Mapping[str, tuple[str, ...]] = {
    "retarget": ("retarget", "to"),
    "drop": ("drop",),
    "fork": ("fork", "name", "fork_to"),
    "add": ("add", "kind", "config", "add_to"),
}
TERMS = ("epsilon", "delta", "composition", "n_max")
# Changes in one question: it must fit into an address.
MOST = 40
_MOST_TEXT = 4000


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a field."""

    message: str
    reason: str

    @classmethod
    def of(cls, error: SageError) -> Wrong:
        """An error for people."""
        text = error.message
        return cls(text[:1].upper() + text[1:].rstrip(".") + ".", error.reason)


@dataclass(frozen=True)
class TypedChange:
    """One change as it was typed."""

    kind: str
    values: Mapping[str, str]
    wrong: Mapping[str, Wrong] = field(default_factory=dict)

    @property
    def blank(self) -> bool:
        """True where nothing was typed. A kind that is chosen is nothing yet."""
        return not any(value for name, value in self.values.items() if name != "kind")

    @property
    def subject(self) -> str:
        """The PTK that it is about, as it will be called."""
        return self.values["name" if self.kind == "fork" else self.kind]

    def but(self, name: str, wrong: Wrong) -> TypedChange:
        """The same, with something wrong about a field."""
        return replace(self, wrong={**self.wrong, name: wrong})


@dataclass(frozen=True)
class Question:
    """All that is asked about one stream.

    ``wrong`` is about the terms, or about the whole (the empty name).
    """

    stream: str
    changes: tuple[TypedChange, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, Wrong] = field(default_factory=dict)
    use: str = ""

    @classmethod
    def read(cls, pairs: Pairs) -> Question:
        """From the query of a URL, or the fields of a form. What nobody asked for is left out."""
        given: dict[str, list[str]] = {}
        for name, value in pairs:
            given.setdefault(name, []).append(value.strip()[:_MOST_TEXT])
        typed_changes = [
            TypedChange(kind, dict(zip(names, values, strict=True)))
            for kind, names in KINDS.items()
            for values in zip_longest(*(given.get(name, []) for name in names), fillvalue="")
        ]
        terms = {name: given[name][0] for name in TERMS if given.get(name, [""])[0]}
        typed = tuple(typed_change for typed_change in typed_changes if not typed_change.blank)
        use = given.get("use", [""])[0]
        return cls(given.get("stream", [""])[0], typed[:MOST], terms, _too_many(typed), use)

    @property
    def asks(self) -> bool:
        """True where anything would change."""
        return bool(self.changes or self.terms or self.use)

    @property
    def is_right(self) -> bool:
        """True where nothing is wrong."""
        return not self.wrong and not any(change.wrong for change in self.changes)

    def pairs(self) -> list[tuple[str, str]]:
        """As a query, in a fixed order."""
        typed = [
            (name, change.values[name]) for change in self.changes for name in KINDS[change.kind]
        ]
        use = [("use", self.use)] if self.use else []
        return [("stream", self.stream), *typed, *self.terms.items(), *use]

    @property
    def query(self) -> str:
        """The query of its page."""
        return urlencode(self.pairs())

    def address(self, **more: str) -> str:
        """The page of this question."""
        return f"what-if?{self.query}" + (f"&{urlencode(more)}" if more else "")

    def without(self, place: int) -> str:
        """The page of this question but for one change."""
        rest = self.changes[:place] + self.changes[place + 1 :]
        return replace(self, changes=rest).address()

    def with_(self, kind: str, **values: str) -> str:
        """The page of this question and one more change; another about the same PTK is replaced."""
        new = TypedChange(kind, {name: values.get(name, "") for name in KINDS[kind]})
        rest = (change for change in self.changes if change.subject != new.subject)
        return replace(self, changes=(*rest, new)).address()

    def with_target(self, ptk: str, place: int | None, target: str) -> str:
        """The page of this question with another target of a PTK, which is new where its change has
        a place.
        """
        if place is None:
            return self.with_("retarget", retarget=ptk, to=target)
        change = self.changes[place]
        new = replace(change, values={**change.values, KINDS[change.kind][-1]: target})
        return replace(
            self, changes=(*self.changes[:place], new, *self.changes[place + 1 :])
        ).address()

    def with_term(self, name: str, value: str) -> str:
        """The page of this question under another term."""
        return replace(self, terms={**self.terms, name: value}).address()

    def of_kind(self, kind: str) -> list[tuple[int, TypedChange]]:
        """The changes of one kind, with their places."""
        return [(place, change) for place, change in enumerate(self.changes) if change.kind == kind]

    def checked(self, spec: StreamSpec, find: Callable[[str], PtkView]) -> Question:
        """With what is wrong about each field, as far as that is known here.

        ``find`` gives a PTK by its name.
        """
        often = Counter(change.subject for change in self.changes)
        checked = [
            _checked(change, spec.name, find, often[change.subject]) for change in self.changes
        ]
        wrong = {**self.wrong, **_wrong_terms(spec, self.terms)}
        if self.use and self.use not in USES:
            told = f"Use must be one of {', '.join(USES)}, got {self.use!r:.40}."
            wrong["use"] = Wrong(told, "VALUE_INVALID")
        return replace(self, changes=tuple(checked), wrong=wrong)

    def asked(self, find: Callable[[str], PtkView]) -> Changes:
        """For the store. Nothing may be wrong."""
        changes = _changes(self.changes, self.terms, find)
        return replace(changes, use={self.stream: self.use}) if self.use else changes

    def spec(self, spec: StreamSpec, **more: Any) -> StreamSpec:
        """The stream as it would be under the terms.

        Reasons: those of a promise and of a stream.
        """
        wanted: dict[str, Any] = dict(self.terms)
        n_max = int(wanted.pop("n_max", spec.n_max))
        use = self.use or spec.use
        return replace(spec, policy=replace(spec.policy, **wanted), n_max=n_max, use=use, **more)

    def blamed(self, error: SageError) -> Question:
        """With an error of the store beside the field that it is about."""
        told = Wrong.of(error)
        subjects = [change.subject for change in self.changes]
        place = next(
            (n for n, name in enumerate(subjects) if name == error.details.get("ptk")), None
        )
        if place is None:
            return replace(self, wrong={**self.wrong, "": told})
        change = self.changes[place]
        changes = list(self.changes)
        changes[place] = change.but(_field(change, error), told)
        return replace(self, changes=tuple(changes))


def _too_many(typed: Sequence[TypedChange]) -> dict[str, Wrong]:
    if len(typed) <= MOST:
        return {}
    return {
        "": Wrong(
            f"At most {MOST} changes fit into one question, got {len(typed)}.", "VALUE_INVALID"
        )
    }


def _checked(
    change: TypedChange, stream: str, find: Callable[[str], PtkView], often: int
) -> TypedChange:
    first, target = KINDS[change.kind][0], KINDS[change.kind][-1]
    typed_change = change
    if change.kind != "add":
        error = _unfit(change, stream, find)
        if error is not None:
            typed_change = typed_change.but(first, Wrong.of(error))
    if change.kind != "drop" and _number(change.values[target]) is None:
        text = f"A target must be a number above 0 and below 1, got {change.values[target]!r:.40}."
        typed_change = typed_change.but(target, Wrong(text, "VALUE_INVALID"))
    if not change.subject:
        name = "name" if change.kind == "fork" else first
        typed_change = typed_change.but(name, Wrong("The PTK must have a name.", "VALUE_INVALID"))
    elif often > 1:
        typed_change = typed_change.but(
            first,
            Wrong(f"{change.subject} is changed {often} times: once is enough.", "VALUE_INVALID"),
        )
    if change.kind == "add":
        if not change.values["kind"]:
            typed_change = typed_change.but("kind", Wrong("Choose a kind.", "VALUE_INVALID"))
        if _object(change.values["config"]) is None:
            text = 'The configuration must be a JSON object, such as {"keys": []}.'
            typed_change = typed_change.but("config", Wrong(text, "JSON_INVALID"))
    return typed_change


def _unfit(change: TypedChange, stream: str, find: Callable[[str], PtkView]) -> SageError | None:
    """Why a change cannot be about the PTK that it names."""
    name = change.values[change.kind]
    if not name:
        return InvalidInput("VALUE_INVALID", "name a PTK")
    try:
        ptk = find(name)
    except SageError as error:
        return error
    if change.kind == "fork":
        return None
    if ptk.stream != stream:
        return Refused(
            "PTK_UNKNOWN", f"stream {stream!r} has no PTK {name!r}: it belongs to {ptk.stream!r}"
        )
    if ptk.status == "RETIRED":
        return Refused("PTK_RETIRED", f"PTK {name!r} is retired: fork it under another name")
    return None


def _wrong_terms(spec: StreamSpec, terms: Mapping[str, str]) -> dict[str, Wrong]:
    """What is wrong about the terms, each beside its field."""
    wrong: dict[str, Wrong] = {}
    size = terms.get("n_max", "1")
    if not (size.isascii() and size.isdigit() and 0 < int(size[:20]) < 2**40):
        wrong["n_max"] = Wrong(
            f"N max must be a whole number from 1, got {size!r:.40}.", "VALUE_INVALID"
        )
    # Whether a delta fits depends on the composition, so those two are looked at together.
    for names in (("epsilon",), ("delta", "composition")):
        some: dict[str, Any] = {name: terms[name] for name in names if name in terms}
        try:
            replace(spec, policy=replace(spec.policy, **some))
        except SageError as error:
            told = Wrong.of(error)
            field = field_of(error)[-1:]
            wrong[next((name for name in some if (name,) == field), next(iter(some)))] = told
    return wrong


def _changes(
    changes: Iterable[TypedChange], terms: Mapping[str, str], find: Callable[[str], PtkView]
) -> Changes:
    added, removed, retargeted = [], [], {}
    for change in changes:
        values = change.values
        if change.kind == "retarget":
            retargeted[values["retarget"]] = _number(values["to"]) or 0.0
        elif change.kind == "drop":
            removed.append(values["drop"])
        elif change.kind == "fork":
            ptk, target = find(values["fork"]), _number(values["fork_to"]) or 0.0
            added.append(
                AddedPtk(
                    name=values["name"],
                    kind=ptk.kind,
                    config=ptk.config,
                    target=target,
                    over=ptk.over,
                )
            )
        else:
            config, target = _object(values["config"]) or {}, _number(values["add_to"]) or 0.0
            added.append(
                AddedPtk(name=values["add"], kind=values["kind"], config=config, target=target)
            )
    return Changes(
        add=tuple(added),
        remove=tuple(removed),
        retarget=retargeted,
        epsilon=terms.get("epsilon"),
        delta=terms.get("delta"),
        composition=terms.get("composition"),
        n_max=int(terms["n_max"]) if "n_max" in terms else None,
    )


def _field(change: TypedChange, error: SageError) -> str:
    """The field that an error of the store is about."""
    names = KINDS[change.kind]
    named = "name" if change.kind == "fork" else names[0]
    field = (*field_of(error), "")[0]
    if field == "target":
        return names[-1]
    return str(field) if field in names and field in ("kind", "config") else named


def _number(text: str) -> float | None:
    """A target, or None for what is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 < number < 1 else None


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
