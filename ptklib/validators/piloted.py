"""The loss test that finds its own stake: the default where nothing is known of the losses.

The test slice has two parts, cut by tag. The first, `SHARE` of it, is a pilot: one release tells
what the losses look like (`pilot`). The stake that suits such losses and the planned number of
records (`power`) is then played on the second part (`betting`). No guess enters, so none can be so
wrong that the test never accepts: where the pilot tells nothing the stake is that for the worst
losses there are, and what a small pilot did not see is supposed to be losses at the bound.

**Proof note.** *Unit:* one record, or one user with at most r of them. *Neighbours:* add or remove
one. *Sensitivity:* each record is in one of the two parts, by its tag (of its user, where the unit
is one), and is in one release. *Cost:* on either part that of one release of the noise. `cost`
covers both and every stake (`noises`, "covering"; the stake is chosen after the price is known), so
the whole slice is charged it once: parallel composition over slices that were cut before anything
was read. *Validity:* given what the pilot told, the stake is fixed and the second part is as fresh
as it was: its records are independent of those of the first. So `betting` and `threshold` hold.

Reasons: SHARE_INVALID, and those of `betting`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from ptklib.errors import InvalidInput
from ptklib.ledger.slices import TagRange
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.validators.betting import LossTest, target_within
from ptklib.validators.noises import Noise, noise_from_json, noise_of
from ptklib.validators.pilot import LossPilot
from ptklib.validators.power import planned_test, samples_needed
from ptklib.validators.supposed import SupposedLosses
from ptklib.validators.verdict import LossVerdict, eta_exact

__all__ = ["METHOD", "SHARE", "PilotedTest", "PilotedVerdict"]

METHOD = "piloted"
# Of the test slice, for the pilot.
SHARE = Fraction(1, 16)
# Scores are that fine: a unit of privacy moves the evidence by so many units at least.
_REACH = 2**26


@dataclass(frozen=True)
class PilotedVerdict:
    """What was found, and all that was released or follows from it: the knots' numbers, the stake,
    the evidence and how much was asked for. DP or public.
    """

    verdict: LossVerdict
    stake: Fraction
    told: tuple[int, ...]

    @property
    def outcome(self) -> str:
        """ACCEPT or RETRY."""
        return self.verdict.outcome

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "outcome": self.outcome,
            "evidence": self.verdict.evidence,
            "threshold": self.verdict.threshold,
            "stake": str(self.stake),
            "pilot": list(self.told),
        }


@dataclass(frozen=True, init=False)
class PilotedTest:
    """A test of "the mean loss is at most ``target``", wrong in an ACCEPT with probability at most
    ``eta``. Public numbers only; ``records`` are those of the whole test slice as planned: the real
    number moves power, never validity.
    """

    target: Fraction
    noise: Noise
    eta: Fraction
    records: int
    bound: Fraction
    records_per_unit: int
    share: Fraction
    cost: Cost = field(repr=False)

    def __init__(
        self,
        *,
        target: Number,
        eta: Number,
        records: int,
        epsilon: Number | None = None,
        noise: Noise | None = None,
        bound: Number = 1,
        records_per_unit: int = 1,
        share: Number = SHARE,
    ) -> None:
        """Check the parameters; fix the price."""
        wanted, most = target_within(target, bound)
        part = exact(share, name="share")
        if not 0 < part < 1:
            raise InvalidInput(
                "SHARE_INVALID",
                f"the pilot's share must be above 0 and below 1, got {show(part)}",
            )
        keep(
            self,
            target=wanted,
            noise=noise_of(epsilon, noise),
            eta=eta_exact(eta),
            records=count_of(records, name="records"),
            bound=most,
            records_per_unit=count_of(records_per_unit, name="records_per_unit"),
            share=part,
        )
        # The pilot's is the coarsest grid of all, so its release costs most.
        keep(self, cost=self.noise.covering(int(self.pilot.release.sensitivity)))

    @property
    def pilot(self) -> LossPilot:
        """What looks at the first part."""
        return LossPilot(
            target=self.target,
            noise=self.noise,
            bound=self.bound,
            records_per_unit=self.records_per_unit,
        )

    def cut(self, tags: TagRange) -> tuple[TagRange, TagRange]:
        """The tags of the pilot and those of the test, of a test slice. They stay the same as data
        grows.
        """
        middle = tags.start + max(1, int((tags.stop - tags.start) * self.share))
        return TagRange(tags.start, middle), TagRange(middle, tags.stop)

    def planned(self, told: tuple[int, ...]) -> LossTest:
        """The test of the second part, by what the pilot told. Post-processing."""
        return planned_test(
            target=self.target,
            noise=self.noise,
            eta=self.eta,
            records=math.ceil(self.records * (1 - self.share)),
            supposed=self.pilot.read(told),
            bound=self.bound,
            records_per_unit=self.records_per_unit,
            least_reach=max(_REACH, int(self.pilot.release.sensitivity)),
        )

    def verdict(
        self, pilot: ArrayLike, losses: ArrayLike, *, source: BitSource | None = None
    ) -> PilotedVerdict:
        """Look at the losses of the first part, judge those of the second. Every call costs
        `cost`."""
        told = self.pilot.tell(pilot, source=source)
        test = self.planned(told)
        return PilotedVerdict(test.verdict(losses, source=source), test.stake, told)

    def needed(self, loss: Number, supposed: SupposedLosses | None = None) -> int | None:
        """Records of the whole slice with which a state of that mean loss is accepted in nine of
        ten cases, whatever its losses look like, or where they look as supposed; None where the
        loss is not below the target. The pilot's share is counted.
        """
        played = samples_needed(
            target=self.target,
            noise=self.noise,
            eta=self.eta,
            loss=loss,
            supposed=supposed,
            bound=self.bound,
            records_per_unit=self.records_per_unit,
            least_reach=max(_REACH, int(self.pilot.release.sensitivity)),
        )
        return None if played is None else math.ceil(played / (1 - self.share))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; numbers that are compared exactly are texts."""
        return {
            "method": METHOD,
            "target": str(self.target),
            "noise": self.noise.as_json(),
            "eta": str(self.eta),
            "records": self.records,
            "bound": str(self.bound),
            "records_per_unit": self.records_per_unit,
            "share": str(self.share),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> PilotedTest:
        """Read `as_json` back."""
        texts = ("target", "eta", "bound", "share")
        return cls(
            **{name: Fraction(body[name]) for name in texts},
            noise=noise_from_json(body["noise"]),
            records=body["records"],
            records_per_unit=body["records_per_unit"],
        )
