"""``sage.yaml``: the streams and PTKs that a store should have.

::

    streams:
      - name: rides              # the fields of a StreamSpec
        ...
    ptks:
      - name: hour-speed
        stream: rides
        kind: statistics
        target: 0.05             # or epsilon: 0.3 (best effort)
        train_every: 1           # may be left out
        over: {rolling: 7}       # may be left out: all; or last, {rolling: K}, {decay: F}
        config: {...}            # the fields of the kind; what the stream says already may be left out

All of it is checked before anything is done: unknown keys, the streams, the configuration of every
PTK. Errors name the line, and all of them are told at once. Reasons: PROJECT_MISSING,
PROJECT_INVALID, PROJECT_KEY_UNKNOWN, PROJECT_FAULTS, and those of streams and PTKs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ptklib.encoding.error_fields import field_of
from ptklib.errors import InvalidInput
from ptkstore.api.goal import Goal
from ptkstore.api.over import ALL, Over
from ptkstore.cli.project.completing import completed
from ptkstore.cli.project.document import Document, Place
from ptkstore.cli.project.faults import Faults

if TYPE_CHECKING:
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.cli.session import Invocation

__all__ = [
    "DEFAULT_NAME",
    "SETTINGS",
    "DeclaredPtk",
    "Project",
    "at_line",
    "declared_in",
    "read_stream",
]

DEFAULT_NAME = "sage.yaml"
# Sections of the same file that `sage serve` reads; see `ptkstore.settings`.
SETTINGS = ("server", "auth", "metadata", "ledger", "lake", "bus", "workers", "subscribers")

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class DeclaredPtk:
    """A PTK as the file has it; ``config`` in its full form."""

    name: str
    stream: str
    kind: str
    config: Mapping[str, Any]
    target: float | None = None
    epsilon: str | None = None
    train_every: int = 1
    over: str = ALL


@dataclass(frozen=True)
class Project:
    """What one file declares."""

    streams: tuple[StreamSpec, ...]
    ptks: tuple[DeclaredPtk, ...]
    document: Document

    def says_use(self, place: int) -> bool:
        """True where the file itself says what the stream at that place uses of its windows."""
        return "use" in self.document.at(("streams", place))

    @classmethod
    def read(cls, path: Path) -> Project:
        """Read and check a file."""
        if not path.is_file():
            raise InvalidInput(
                "PROJECT_MISSING",
                f"there is no {path}: `sage init -t taxi` writes one, `-f FILE` names another",
                file=str(path),
            )
        document = Document.read(path)
        faults = Faults()
        _mapping(document, (), "the file")
        document.only((), ("streams", "ptks", *SETTINGS), "the file", faults)
        streams: list[StreamSpec] = []
        ptks: list[DeclaredPtk] = []
        with faults.kept():
            for place in _items(document, "streams"):
                with faults.kept():
                    streams.append(read_stream(document, place, faults))
        with faults.kept():
            for place in _items(document, "ptks"):
                with faults.kept():
                    ptks.append(_read_ptk(document, place, faults, streams))
        for section in ("streams", "ptks"):
            _named_once(document, section, faults)
        faults.raised()
        return cls(tuple(streams), tuple(ptks), document)


def declared_in(session: Invocation, file: Path | None) -> Path:
    """The project's file: the one that was named, else sage.yaml here, else in the store."""
    if file is not None:
        return file
    here, there = Path(DEFAULT_NAME), session.path / DEFAULT_NAME
    return there if there.is_file() and not here.is_file() else here


def read_stream(document: Document, place: Place = (), faults: Faults | None = None) -> StreamSpec:
    """The stream that is declared at ``place``. Raises its last error; those before it are kept in
    ``faults``, or all are raised where there is none.
    """
    from ptklib.ledger.policy import Policy
    from ptkstore.api.columns import Column
    from ptkstore.api.stream_spec import StreamSpec

    if faults is None:
        faults = Faults()
        spec: list[StreamSpec] = []
        with faults.kept():
            spec.append(read_stream(document, place, faults))
        faults.raised()
        return spec[0]
    own = Faults()
    body = _mapping(document, place, "a stream")
    document.only(place, [field.name for field in fields(StreamSpec)], "a stream", own)
    if isinstance(body.get("policy"), dict):
        policy = (*place, "policy")
        document.only(policy, [field.name for field in fields(Policy)], "a policy", own)
    columns = body.get("columns")
    for number in range(len(columns) if isinstance(columns, list) else 0):
        column = (*place, "columns", number)
        with own.kept():
            _mapping(document, column, "a column")
            if document.only(column, [field.name for field in fields(Column)], "a column", own):
                _located(document, column, partial(Column.from_json, document.at(column)))
    own.raised_into(faults)
    return _located(document, place, lambda: StreamSpec.from_json(body))


def _read_ptk(
    document: Document, place: Place, faults: Faults, streams: Sequence[StreamSpec] = ()
) -> DeclaredPtk:
    from ptklib import registry

    own = Faults()
    body = _mapping(document, place, "a PTK")
    all_known = document.only(place, [field.name for field in fields(DeclaredPtk)], "a PTK", own)
    missing = [
        field.name
        for field in fields(DeclaredPtk)
        if field.default is MISSING and field.name not in body
    ]
    with own.kept():
        _demand(not missing, document, place, f"a PTK must have {', '.join(missing)}")
    for name in ("name", "stream", "kind"):
        with own.kept():
            _demand(
                isinstance(body.get(name, ""), str),
                document,
                (*place, name),
                f"{name} must be text",
            )
    target, every = body.get("target"), body.get("train_every", 1)
    goal, over = Goal(), Over.of(ALL)
    with own.kept():
        number = isinstance(target, int | float | None) and not isinstance(target, bool)
        _demand(number, document, (*place, "target"), "target must be a number")
        # A key that is misspelt is told already, and may be the one that is missing here.
        if all_known or target is not None or "epsilon" in body:
            goal = _located(document, place, lambda: Goal.of(target, body.get("epsilon")))
    with own.kept():
        _demand(
            type(every) is int and every >= 1,
            document,
            (*place, "train_every"),
            "train_every must be 1 or more",
        )
    with own.kept():
        over = _located(document, place, lambda: Over.of(body.get("over", ALL)))
    if missing:
        own.raised_into(faults)
    kind, config = body["kind"], _mapping(document, (*place, "config"), "config")
    if kind in registry.kinds():
        document.only(
            (*place, "config"),
            [field.name for field in fields(registry.kinds()[kind])],
            f"{kind} config",
            own,
        )
    own.raised_into(faults)
    spec = next((stream for stream in streams if stream.name == body["stream"]), None)
    made = _located(
        document,
        place,
        lambda: registry.make(kind, config if spec is None else completed(spec, kind, config)),
    )
    return DeclaredPtk(
        name=body["name"],
        stream=body["stream"],
        kind=kind,
        target=None if goal.target is None else float(goal.target),
        epsilon=goal.epsilon,
        config=made.as_json(),
        train_every=every,
        over=over.text,
    )


def _located(document: Document, place: Place, make: Callable[[], Made]) -> Made:
    """What ``make`` gives of what is at ``place``; its errors name the line of their field."""
    try:
        return make()
    except InvalidInput as error:
        raise at_line(document, place, error) from None


def at_line(document: Document, place: Place, error: InvalidInput) -> InvalidInput:
    """An error about what is at ``place``, with the line of its field."""
    field = (*place, *field_of(error))
    details = {**error.details, "file": document.name, "line": document.line(field)}
    return InvalidInput(error.reason, f"{document.where(field)}: {error.message}", **details)


def _mapping(document: Document, place: Place, what: str) -> dict[str, Any]:
    body = document.at(place)
    _demand(isinstance(body, dict), document, place, f"{what} must have keys and values")
    mapping: dict[str, Any] = body
    return mapping


def _items(document: Document, name: str) -> list[Place]:
    """The places of the entries of a list that may be left out or empty."""
    body = document.body.get(name)
    _demand(body is None or isinstance(body, list), document, (name,), f"{name} must be a list")
    return [(name, number) for number in range(len(body or ()))]


def _named_once(document: Document, section: str, faults: Faults) -> None:
    entries = document.body.get(section)
    names: list[str] = []
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str):
            with faults.kept():
                _demand(
                    name not in names, document, (section, number), f"{name!r} is declared twice"
                )
            names.append(name)


def _demand(holds: bool, document: Document, place: Place, words: str) -> None:
    if not holds:
        raise InvalidInput(
            "PROJECT_INVALID",
            f"{document.where(place)}: {words}",
            file=document.name,
            line=document.line(place),
        )
