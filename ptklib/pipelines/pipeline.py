"""What is asked for: a PTK or model that is released when its mean loss is at most ``target``.

Everything here is public and known before any record is: what an attempt costs follows from the PTK
and an epsilon, and no record ever pays more than ``epsilon`` for all attempts together, by a plain
sum, whatever strategy there is. The stream's own promise is kept beside it, by the ledger.

An ACCEPT is wrong with probability at most ``eta`` over all attempts: attempt i of the tests spends
eta/(i (i + 1)).

JSON: ``{"name", "kind", "config", "target", "epsilon", "delta", "eta", "strategy": {"kind", ...},
"looks", "tests", "most_attempts"}``; amounts are exact texts. No code travels.

Reasons: PIPELINE_INVALID, PIPELINE_FIELDS, STRATEGY_UNKNOWN, those of `registry`, `amounts`,
`verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ptklib import registry
from ptklib.encoding.error_fields import inside
from ptklib.errors import InvalidInput
from ptklib.ledger.slices import check_name
from ptklib.pipelines.planned import PlanAhead
from ptklib.pipelines.split import TagSplit
from ptklib.pipelines.strategies import STRATEGIES
from ptklib.pipelines.strategy import Strategy
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, exact, show
from ptklib.ptk import Ptk
from ptklib.validators.verdict import eta_exact

__all__ = ["Pipeline"]

_TEXTS = ("target", "epsilon", "delta", "eta", "looks", "tests")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """See the module. ``target`` is in units of `Ptk.loss`, between 0 and 1."""

    name: str
    ptk: Ptk
    target: Number
    epsilon: Number
    delta: Number = 0
    eta: Number = "0.05"
    strategy: Strategy = field(default_factory=PlanAhead)
    looks: Number = "0.1"
    tests: Number = "0.2"
    most_attempts: int = 30

    def __post_init__(self) -> None:
        """Make amounts exact, and refuse what can never be released or paid."""
        check_name(self.name, "name")
        if not isinstance(self.ptk, Ptk):
            raise InvalidInput(
                "PIPELINE_INVALID",
                f"ptk must be a PTK or model, got {type(self.ptk).__name__}",
                field="ptk",
            )
        target = exact(self.target, name="target")
        if not 0 < target < 1:
            raise InvalidInput(
                "PIPELINE_INVALID",
                f"target must be a mean loss above 0 and below 1, got {show(target)}",
                field="target",
            )
        if type(self.most_attempts) is not int or not 1 <= self.most_attempts <= 1000:
            raise InvalidInput(
                "PIPELINE_INVALID",
                f"most_attempts must be a whole number from 1 to 1000, got {self.most_attempts!r:.40}",
                field="most_attempts",
            )
        split = TagSplit.of(self.looks, self.tests)
        for name, value in (
            ("target", target),
            ("epsilon", epsilon_exact(self.epsilon)),
            ("delta", delta_exact(self.delta)),
            ("eta", eta_exact(self.eta)),
            ("looks", split.looks),
            ("tests", split.tests),
        ):
            object.__setattr__(self, name, value)
        # Refused now, not in the first attempt: a PTK that needs a delta, noise that is too large.
        self.ptk.cost(Fraction(self.epsilon), Fraction(self.delta))

    @property
    def split(self) -> TagSplit:
        """The tags of training, looks and tests."""
        return TagSplit(Fraction(self.looks), Fraction(self.tests))

    def as_json(self) -> dict[str, Any]:
        """See the module."""
        return {
            "name": self.name,
            "kind": self.ptk.kind,
            "config": self.ptk.as_json(),
            "strategy": self.strategy.as_json(),
            "most_attempts": self.most_attempts,
            **{name: str(getattr(self, name)) for name in _TEXTS},
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Pipeline:
        """Read the form of `as_json`; what has a default may be left out."""
        needed, known = {"name", "kind", "config", "target", "epsilon"}, _FIELDS
        if not isinstance(body, Mapping) or not needed <= set(body) <= known:
            given = sorted(map(str, body)) if isinstance(body, Mapping) else type(body).__name__
            raise InvalidInput(
                "PIPELINE_FIELDS",
                f"a pipeline must have the fields {sorted(needed)} and may have "
                f"{sorted(known - needed)}, got {given}",
            )
        more: dict[str, Any] = {name: _amount(body[name], name) for name in _TEXTS if name in body}
        if "most_attempts" in body:
            more["most_attempts"] = body["most_attempts"]
        if "strategy" in body:
            with inside("strategy"):
                more["strategy"] = _strategy(body["strategy"])
        with inside("config"):
            ptk = registry.make(body["kind"], body["config"])
        return cls(name=body["name"], ptk=ptk, **more)


_FIELDS = {"name", "kind", "config", "strategy", "most_attempts", *_TEXTS}


def _amount(value: object, name: str) -> Number:
    """An amount as it is written: a number or a text, also a fraction such as ``1/3``."""
    if isinstance(value, str) and value.count("/") == 1:
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            pass
    return exact(value, name=name)  # type: ignore[arg-type]


def _strategy(body: object) -> Strategy:
    kind = body.get("kind") if isinstance(body, Mapping) else body
    if not isinstance(kind, str) or kind not in STRATEGIES:
        raise InvalidInput(
            "STRATEGY_UNKNOWN",
            f"strategy must be an object whose kind is one of {sorted(STRATEGIES)}, got "
            f"{kind!r:.60}",
            field="kind",
        )
    return STRATEGIES[kind].from_json({} if isinstance(body, str) else body)  # type: ignore[arg-type]
