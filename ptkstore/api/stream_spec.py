"""What a stream is, fixed when it is created: columns, unit of privacy, policy, blocks and windows.

Everything here is public. A specification is validated when it is made, never changes but for
``use``, and survives JSON and YAML unchanged; a key that is not known is an error, not a hint.
Reasons: SPEC_INVALID, SPEC_KEY_UNKNOWN, SPEC_UNREADABLE, COLUMN_INVALID, and those of policies and
amounts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType

import pyarrow as pa

from ptklib.encoding.canonical import canonical
from ptklib.encoding.error_fields import inside, joined
from ptklib.encoding.notebook import html_of
from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import check_name
from ptklib.privacy.amounts import Number, epsilon_exact, exact, show
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptkstore.api.columns import Column

__all__ = [
    "LATE",
    "MAX_BLOCKS",
    "MAX_COLUMNS",
    "MAX_HORIZON_BLOCKS",
    "MINIMUM",
    "OUT_OF_BOUNDS",
    "SURPLUS",
    "USES",
    "StreamSpec",
]

OUT_OF_BOUNDS = ("clip", "refuse")
LATE = ("oldest_open", "quarantine")
MINIMUM, SURPLUS = "minimum", "surplus"
USES = (MINIMUM, SURPLUS)
MAX_COLUMNS = 2000
# In which the event times of one batch may lie.
MAX_BLOCKS = 256
# As many as a watermark may pass at once.
MAX_HORIZON_BLOCKS = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class StreamSpec:
    """One stream.

    *Blocks.* At event level a block is a span of ``block_seconds`` of event time; at user level a
    block is the cohort of users that were first seen in a span of ``window_seconds``. Spans are
    counted from 1970 and begin with the ``lower`` bound of the time column: which blocks exist is
    public. A span ends for good ``lateness_seconds`` after its end. Event times may lie within
    ``horizon_blocks`` blocks from the oldest open one; those further ahead are refused until the
    watermark has moved.

    *Prices.* ``count_epsilon`` is charged to every block for its one DP count; ``profile_share`` of
    the tags is set aside for profiles; ``n_max`` is the most samples a profile may ask for;
    ``quotas`` give contexts their share of the policy.

    *Use.* What PTKs take of a window: ``minimum``, as little as their targets need, so that a
    shorter window would do; or ``surplus``, also what is left of the window and of its budget,
    which is destroyed with it otherwise. The one field that may be changed later: it is no promise.
    """

    name: str
    columns: tuple[Column, ...]
    time_column: str
    unit: str = ""
    user_column: str | None = None
    records_per_user: int = 1
    policy: Policy = None  # type: ignore[assignment]
    window_seconds: int = _DAY
    block_seconds: int = 0
    lateness_seconds: int = 0
    horizon_blocks: int = MAX_HORIZON_BLOCKS
    n_max: int = 1_000_000
    profile_share: Number = "0.1"
    out_of_bounds: str = "clip"
    late: str = "oldest_open"
    count_epsilon: Number = "0.01"
    quotas: Mapping[str, Number] = field(default_factory=dict)
    use: str = SURPLUS

    def __post_init__(self) -> None:
        """Fill in what follows from the rest, make amounts exact, and refuse what does not fit
        together.
        """
        _require(
            isinstance(self.name, str) and _NAME.fullmatch(self.name),
            "name",
            "1 to 100 letters, digits, '_', '.', '-'",
        )
        given: object = self.policy
        if given is None:
            object.__setattr__(self, "policy", Policy(unit=self.unit or "event"))
        _require(given is None or isinstance(given, Policy), "policy", "a Policy")
        if not self.unit:
            object.__setattr__(self, "unit", self.policy.unit)
        _require(self.unit == self.policy.unit, "unit", f"that of the policy, {self.policy.unit}")
        if self.block_seconds == 0:
            object.__setattr__(self, "block_seconds", self.window_seconds)
        for name, least in (
            ("window_seconds", 1),
            ("block_seconds", 1),
            ("lateness_seconds", 0),
            ("n_max", 1),
        ):
            value = getattr(self, name)
            _require(
                type(value) is int and least <= value < 2**40, name, f"a whole number from {least}"
            )
        horizon = self.horizon_blocks
        _require(
            type(horizon) is int and 1 <= horizon <= MAX_HORIZON_BLOCKS,
            "horizon_blocks",
            f"1 to {MAX_HORIZON_BLOCKS}",
        )
        _require(
            self.window_seconds % self.block_seconds == 0,
            "window_seconds",
            "a multiple of block_seconds",
        )
        _require(
            self.out_of_bounds in OUT_OF_BOUNDS,
            "out_of_bounds",
            f"one of {', '.join(OUT_OF_BOUNDS)}",
        )
        _require(self.late in LATE, "late", f"one of {', '.join(LATE)}")
        _require(self.use in USES, "use", f"one of {', '.join(USES)}")
        self._check_columns()
        self._check_user()
        self._check_amounts()

    def _check_columns(self) -> None:
        _require(
            isinstance(self.columns, list | tuple)
            and 0 < len(self.columns) <= MAX_COLUMNS
            and all(isinstance(column, Column) for column in self.columns),
            "columns",
            f"1 to {MAX_COLUMNS} of Column",
        )
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        _require(len(set(names)) == len(names), "columns", "named differently")
        _require(self.time_column in names, "time_column", "the name of a column")
        time = self.column(self.time_column)
        _require(
            time.is_timestamp and not time.nullable, "time_column", "a timestamp that is never null"
        )
        _require(
            time.lower is not None,
            "time_column",
            "a column with a lower bound: where the blocks begin",
        )
        for place, column in enumerate(self.columns):
            if (
                column.name in (self.time_column, self.user_column)
                or column.domain is not None
                or column.type == "bool"
            ):
                continue
            if column.upper is None or (column.lower is None and column.type != "string"):
                raise InvalidInput(
                    "COLUMN_INVALID",
                    f"column {column.name!r} must have public bounds (lower and upper) or a public "
                    "domain",
                    column=column.name,
                    field=joined("columns", place),
                )

    def _check_user(self) -> None:
        _require(
            type(self.records_per_user) is int and 1 <= self.records_per_user < 2**31,
            "records_per_user",
            "at least 1",
        )
        if self.unit == "event":
            _require(self.user_column is None, "user_column", "left out at event level")
            _require(self.records_per_user == 1, "records_per_user", "left out at event level")
            return
        users = [column for column in self.columns if column.name == self.user_column]
        _require(len(users) == 1, "user_column", "the name of a column, at user level")
        fits = (
            (users[0].is_integer or users[0].type == "string")
            and not users[0].nullable
            and users[0].domain is None
        )
        _require(fits, "user_column", "an integer or string that is never null, without a domain")

    def _check_amounts(self) -> None:
        share = exact(self.profile_share, name="profile_share")
        _require(share < 1, "profile_share", "at least 0 and less than 1")
        object.__setattr__(self, "profile_share", share)
        object.__setattr__(
            self, "count_epsilon", epsilon_exact(self.count_epsilon, name="count_epsilon")
        )
        _require(
            Fraction(self.count_epsilon) <= Fraction(self.policy.epsilon),
            "count_epsilon",
            "within the policy",
        )
        _require(isinstance(self.quotas, Mapping), "quotas", "a mapping of context to share")
        # Contexts may have dots in their names, so an error is about all of them.
        with inside("quotas"):
            quotas = {
                check_name(name, "context"): exact(quota, name="share")
                for name, quota in self.quotas.items()
            }
        _require(
            all(0 < quota <= 1 for quota in quotas.values()),
            "quotas",
            "shares above 0 and at most 1",
        )
        object.__setattr__(self, "quotas", MappingProxyType(dict(sorted(quotas.items()))))
        self.count_release()

    @property
    def span_ms(self) -> int:
        """The length of the span of one block."""
        return (self.block_seconds if self.unit == "event" else self.window_seconds) * 1000

    @property
    def begins_ms(self) -> int:
        """The public time at which the blocks begin."""
        begins = self.column(self.time_column).bounds_ms[0]
        assert begins is not None
        return begins

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches that are read back."""
        return pa.schema(
            [
                pa.field(column.name, column.arrow, nullable=column.nullable)
                for column in self.columns
            ]
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the columns: producers name it to prove that they mean
        this schema.
        """
        return hashlib.sha256(canonical([column.as_json() for column in self.columns])).hexdigest()

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def count_release(self) -> LaplaceRelease:
        """The mechanism of a block's DP count; its ``cost`` is what to charge.

        *Unit*: records. *Sensitivity*: 1 at event level, ``records_per_user`` at user level (a user
        is in one block only). *Cost*: ``count_epsilon``, pure.
        """
        return LaplaceRelease(epsilon=self.count_epsilon, sensitivity=self.records_per_user)

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return html_of(f"Stream {self.name}", self.as_json())

    def as_json(self) -> dict[str, object]:
        """All fields as plain JSON values."""
        body: dict[str, object] = {
            spec_field.name: getattr(self, spec_field.name) for spec_field in fields(self)
        }
        body["columns"] = [column.as_json() for column in self.columns]
        body["policy"] = self.policy.as_json()
        body["quotas"] = {name: show(Fraction(quota)) for name, quota in self.quotas.items()}
        for name in ("profile_share", "count_epsilon"):
            body[name] = show(Fraction(getattr(self, name)))
        return body

    @classmethod
    def from_json(cls, body: object) -> StreamSpec:
        """Read `as_json` back. Fields with a default may be missing; an unknown key is an error."""
        if not isinstance(body, Mapping):
            raise InvalidInput(
                "SPEC_UNREADABLE",
                f"a stream must be an object with fields, got {type(body).__name__}",
            )
        _known(body, cls, "the stream")
        values = dict(body)
        needed = {"name", "columns", "time_column"} - values.keys()
        if needed:
            _require(False, ", ".join(sorted(needed)), "given", field=min(needed))
        _require(isinstance(values["columns"], list | tuple), "columns", "a list")
        columns = []
        for place, column in enumerate(values["columns"]):
            with inside("columns", place):
                columns.append(Column.from_json(column))
        values["columns"] = tuple(columns)
        policy = values.get("policy")
        if policy is not None:
            _require(isinstance(policy, Mapping), "policy", "an object")
            with inside("policy"):
                _known(policy, Policy, "the policy")
                values["policy"] = Policy.from_json(policy)
        return cls(**values)

    @classmethod
    def from_stored(cls, body: object) -> StreamSpec:
        """Read what a store holds. One that was written before there was a ``use`` means the
        minimum: its stream goes on as it did.
        """
        return cls.from_json({"use": MINIMUM, **body} if isinstance(body, Mapping) else body)

    def to_json_text(self) -> str:
        """The canonical JSON text."""
        return canonical(self.as_json()).decode()

    @classmethod
    def from_json_text(cls, text: str | bytes) -> StreamSpec:
        """Read JSON text."""
        try:
            body = json.loads(text)
        except ValueError:
            raise InvalidInput("SPEC_UNREADABLE", "the text is not JSON") from None
        return cls.from_json(body)

    def to_yaml(self) -> str:
        """The specification as YAML, fields in the order of their definition."""
        import yaml

        text: str = yaml.safe_dump(self.as_json(), sort_keys=False, allow_unicode=True)
        return text

    @classmethod
    def from_yaml(cls, text: str) -> StreamSpec:
        """Read YAML (the safe subset: no tags that make objects)."""
        import yaml

        try:
            body = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            raise InvalidInput("SPEC_UNREADABLE", "the text is not YAML") from None
        return cls.from_json(body)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes as JSON."""
        return (StreamSpec.from_json, (self.as_json(),))

    def __hash__(self) -> int:
        """Equal specifications hash alike."""
        return hash(self.to_json_text())


def _require(holds: object, name: str, must: str, *, field: str = "") -> None:
    if not holds:
        raise InvalidInput("SPEC_INVALID", f"{name} must be {must}", field=field or name)


def _known(body: Mapping[str, object], kind: type, what: str) -> None:
    known = {known_field.name for known_field in fields(kind)}
    unknown = sorted(str(key)[:40] for key in body.keys() - known)
    if unknown:
        raise InvalidInput(
            "SPEC_KEY_UNKNOWN",
            f"{what} has no {', '.join(unknown)}; it has {', '.join(sorted(known))}",
            keys=unknown,
            field=unknown[0],
        )
