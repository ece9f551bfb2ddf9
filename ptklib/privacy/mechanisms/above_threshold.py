"""Ask many queries, learn only which is the first to exceed a public threshold, and pay once.

`AboveThreshold` is the priced mechanism; `AboveThreshold.start` opens one session. A session
answers False any number of times and True once; after that every question raises `MechanismSpent`.
Nothing else ever comes out of it: not the value, not the noise, not how near it was. A session
cannot be copied or pickled, because two sessions with the same threshold noise would pay once for
two answers. (A forked process could still do so: do not fork with a session open.)

Reasons: MECHANISM_SPENT, SESSION_NOT_COPYABLE, THRESHOLD_NOT_INTEGER, and those of `inputs` and
`amounts`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, SupportsIndex, final

from ptklib.errors import InvalidInput, MechanismSpent
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import PureCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.inputs import integer, noise_scale, sensitivity_integer
from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.privacy.noise.source import BitSource

__all__ = ["AboveThreshold", "AboveThresholdSession"]

# Query noise is drawn for this many questions at a time: the sampler is faster in bulk.
_AHEAD = 32


@dataclass(frozen=True, init=False)
class AboveThreshold:
    """The sparse vector technique with one positive answer.

    *Unit*: that of the queries, integers. *Neighbours*: add or remove one unit of privacy (record
    or user). *Sensitivity*: each query moves by at most ``sensitivity`` =: d between neighbours, in
    any direction; queries may be chosen after seeing the earlier answers. *Cost*: with e1 = e2 =
    epsilon/2, the threshold T gets noise G of scale d/e1 and each query q_i noise Z_i of scale
    2d/e2; the answer is q_i + Z_i >= T + G. Compare the outcome "False k-1 times, then True" on
    neighbours D and D', pairing G = g on D with G = g + d on D', a bijection of the integers that
    costs a factor exp(d e1/d) = exp(e1). For i < k: q'_i <= q_i + d, so q_i + Z_i < T + g implies
    q'_i + Z_i < T + g + d: at least as likely. For k: q'_k >= q_k - d, so it suffices that Z_k is
    2d larger, which costs a factor exp(2d e2/(2d)) = exp(e2). Together exp(epsilon), and only
    exp(e1) for a session that never says True. So a whole session, however many questions it
    answers, is epsilon-DP.
    """

    epsilon: Fraction
    sensitivity: int
    threshold: int
    threshold_scale: Fraction
    query_scale: Fraction
    cost: PureCost

    def __init__(self, *, epsilon: Number, sensitivity: int, threshold: int) -> None:
        """Check the parameters and fix the cost; no data yet. ``threshold`` is public."""
        level, reach = epsilon_exact(epsilon), sensitivity_integer(sensitivity)
        half, bar = level / 2, integer(threshold, name="threshold", reason="THRESHOLD_NOT_INTEGER")
        keep(
            self,
            epsilon=level,
            sensitivity=reach,
            threshold=bar,
            threshold_scale=noise_scale(reach / half, name="scale of the threshold noise"),
            query_scale=noise_scale(2 * reach / half, name="scale of the query noise"),
            cost=PureCost(epsilon=level),
        )

    def start(self, *, source: BitSource | None = None) -> AboveThresholdSession:
        """One session, with its own threshold noise.

        Every session costs ``cost``, whatever it answers.
        """
        return AboveThresholdSession(self, source)


@final
class AboveThresholdSession:
    """One run of `AboveThreshold`: `ask` until it says True."""

    __slots__ = ("__bar", "__lock", "__noise", "__source", "__spent", "mechanism")

    def __init__(self, mechanism: AboveThreshold, source: BitSource | None) -> None:
        """Draw the noise of the threshold. Use `AboveThreshold.start`."""
        self.mechanism = mechanism
        self.__source = source
        self.__lock = threading.Lock()
        self.__spent = False
        self.__noise: list[int] = []
        self.__bar = mechanism.threshold + int(
            discrete_laplace(1, mechanism.threshold_scale, source=source)[0]
        )

    @property
    def cost(self) -> PureCost:
        """What the whole session costs, from its start."""
        return self.mechanism.cost

    def ask(self, value: int) -> bool:
        """Whether ``value`` plus noise reaches the threshold plus noise.

        After True: `MechanismSpent`.
        """
        with self.__lock:
            if self.__spent:
                raise MechanismSpent(
                    "MECHANISM_SPENT",
                    "this mechanism already said True and may say no more; start a new one, which "
                    "is charged again",
                )
            data = integer(value, name="value")
            if not self.__noise:
                draws = discrete_laplace(_AHEAD, self.mechanism.query_scale, source=self.__source)
                self.__noise = draws.tolist()
            self.__spent = data + self.__noise.pop() >= self.__bar
            return self.__spent

    def __repr__(self) -> str:
        """The public parameters only."""
        return f"AboveThresholdSession({self.mechanism!r})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse pickling and copying."""
        raise InvalidInput(
            "SESSION_NOT_COPYABLE",
            "a session must not be copied or stored: its noise may be used once",
        )
