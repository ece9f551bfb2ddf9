"""Which batches were accepted: for every sender, its numbers; and which sessions are over.

Three kinds of sender, each in bounded room:

- a producer of a caller, which numbers its batches by itself and for ever. Up to `MAX_PRODUCERS`
  names for each caller;
- a producer in a session: a producer that begins anew asks for a session and counts from 0. A new
  session of the same producer ends the one before, so what the old one sends late is refused;
- a session of no producer in particular, for pushes that have no number of their own. The newest
  `MAX_SESSIONS` of each caller are remembered; older ones are over.

Of what was forgotten nobody can say whether it came. It is *refused*, never acknowledged: an
acknowledgement of what is not there would lose rows, taking it in again would double them. Nobody's
answer depends on what other callers sent.

Numbers from releases that knew no callers count for every caller that uses the producer's name,
because it was not recorded who sent them. Where such a release had closed gaps (it kept as many
ranges as we do), the first range may hold numbers that never came: it counts as forgotten.

Reasons: SEQ_FORGOTTEN, SESSION_ENDED, SESSION_UNKNOWN, PRODUCERS_TOO_MANY.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from enum import Enum
from typing import Any

from ptklib.errors import Refused
from ptkstore.streams.progress.senders import UNRECORDED, Sender, new_session, session_number
from ptkstore.streams.ranges import MAX_RANGES, Ranges

__all__ = ["MAX_PRODUCERS", "MAX_SESSIONS", "Accepted", "Batch", "Verdict", "refusal"]

MAX_PRODUCERS = 10_000
MAX_SESSIONS = 1 << 14
# Sessions are given out from numbers that were set aside durably, so many at a time.
_SET_ASIDE = 1 << 20
# No producer has this name.
_OURS = ""

Batch = tuple[Sender, int]


class Verdict(Enum):
    """What there is to say of a batch."""

    NEW = "NEW"
    DUPLICATE = "DUPLICATE"
    FORGOTTEN = "SEQ_FORGOTTEN"
    ENDED = "SESSION_ENDED"
    UNKNOWN = "SESSION_UNKNOWN"
    TOO_MANY = "PRODUCERS_TOO_MANY"


class _Producer:
    """A name of a caller: its newest session, if it ever had one, and the numbers in it."""

    __slots__ = ("ranges", "session")

    def __init__(
        self,
        session: str = "",
        ranges: list[list[int]] | None = None,
        forgotten: list[int] | None = None,
    ):
        self.session = session
        self.ranges = Ranges(ranges, forgotten)


class _Caller:
    """What one caller sent, and the sessions it was given. Those with a number up to ``ended`` are
    over.

    Sessions are numbered for each caller by itself: from a number that all share, a caller would
    learn how busy the others are. Below ``set_aside`` no number is given out after a restart.
    """

    __slots__ = ("ended", "next", "order", "producers", "sessions", "set_aside")

    def __init__(self, body: dict[str, Any] | None = None) -> None:
        fields = body or {}
        self.producers = {
            name: _Producer(**producer) for name, producer in fields.get("producers", {}).items()
        }
        self.sessions = {
            session: Ranges(**ranges) for session, ranges in fields.get("sessions", {}).items()
        }
        self.order = sorted((session_number(session), session) for session in self.sessions)
        self.ended = int(fields.get("ended", 0))
        self.set_aside = self.next = int(fields.get("set_aside", 1))

    def add(self, session: str) -> Ranges:
        """The numbers of a session, which is remembered from now on; the oldest one goes where
        there are too many.
        """
        ranges = self.sessions.get(session)
        if ranges is None:
            ranges = self.sessions[session] = Ranges()
            insort(self.order, (session_number(session), session))
            if len(self.order) > MAX_SESSIONS:
                number, oldest = self.order.pop(0)
                self.ended = max(self.ended, number)
                del self.sessions[oldest]
        return ranges

    def as_json(self) -> dict[str, Any]:
        producers = {
            name: producer.ranges.as_json() | {"session": producer.session}
            for name, producer in self.producers.items()
        }
        sessions = {session: ranges.as_json() for session, ranges in self.sessions.items()}
        return {
            "producers": producers,
            "sessions": sessions,
            "ended": self.ended,
            "set_aside": self.set_aside,
        }


class Accepted:
    """A set of batches. Changed by the stream's writer alone, in its turn."""

    def __init__(self, body: dict[str, Any] | None = None) -> None:
        """Empty, or what `as_json` gave, here or in a release that knew no callers."""
        entries = dict(body or {})
        ours = entries.pop(_OURS, {})
        self._callers = {mark: _Caller(caller) for mark, caller in ours.get("callers", {}).items()}
        self._unrecorded = {producer: _unrecorded(numbers) for producer, numbers in entries.items()}

    def judge(self, sender: Sender, seq: int) -> Verdict:
        """What there is to say of a batch."""
        if sender.caller == UNRECORDED:
            return _verdict(self._unrecorded.get(sender.producer), seq)
        over = self.judge_session(sender)
        if over is not Verdict.NEW:
            return over
        caller = self._callers.get(sender.caller)
        if not sender.producer:
            return _verdict(None if caller is None else caller.sessions.get(sender.session), seq)
        known = None if caller is None else caller.producers.get(sender.producer)
        verdict = _verdict(None if known is None else known.ranges, seq)
        if verdict is Verdict.NEW and not sender.session:
            verdict = _verdict(self._unrecorded.get(sender.producer), seq)
        crowded = caller is not None and known is None and len(caller.producers) >= MAX_PRODUCERS
        return Verdict.TOO_MANY if crowded and verdict is Verdict.NEW else verdict

    def judge_session(self, sender: Sender) -> Verdict:
        """NEW while the sender may send, whatever it sent before."""
        caller = self._callers.get(sender.caller)
        number = session_number(sender.session) if sender.session else 0
        if number >= (1 if caller is None else caller.next):
            return Verdict.UNKNOWN
        if not sender.producer:
            return Verdict.ENDED if caller is not None and number <= caller.ended else Verdict.NEW
        known = None if caller is None else caller.producers.get(sender.producer)
        newest = "" if known is None else known.session
        if newest == sender.session:
            return Verdict.NEW
        # A session of a producer is written down when it begins: one that is not there began for
        # somebody else.
        return Verdict.ENDED if newest and number < session_number(newest) else Verdict.UNKNOWN

    def holds(self, sender: Sender, seq: int) -> bool:
        """True for a batch that is whole wherever it lies: it came, or it was forgotten, which only
        whole ones are.
        """
        return self.judge(sender, seq) in (Verdict.DUPLICATE, Verdict.FORGOTTEN, Verdict.ENDED)

    def update(self, batches: Iterable[Batch]) -> None:
        """Add batches, in any order."""
        touched: dict[int, Ranges] = {}
        for sender, seq in sorted(batches, key=_in_order):
            ranges = self._ranges(sender)
            if ranges is not None and not ranges.forgot(seq):
                ranges.add(seq)
                touched[id(ranges)] = ranges
        # At the end: in between, numbers that will join each other may lie apart.
        for ranges in touched.values():
            ranges.trim()

    def issue(self, caller: str, producer: str) -> tuple[str, bool]:
        """A new session, and whether it must be written down before anybody hears of it.

        ``caller`` is a mark.
        """
        known = self._callers.setdefault(caller, _Caller())
        if producer and producer not in known.producers and len(known.producers) >= MAX_PRODUCERS:
            raise refusal(Verdict.TOO_MANY, Sender(caller, producer))
        number, known.next = known.next, known.next + 1
        must_write = bool(producer) or number >= known.set_aside
        if number >= known.set_aside:
            known.set_aside = number + _SET_ASIDE
        session = new_session(number)
        if producer:
            known.producers[producer] = _Producer(session)
        return session, must_write

    def as_json(self) -> dict[str, Any]:
        """For the file of the stream's progress."""
        callers = {mark: caller.as_json() for mark, caller in self._callers.items()}
        return {producer: ranges.as_json() for producer, ranges in self._unrecorded.items()} | {
            _OURS: {"callers": callers}
        }

    def _ranges(self, sender: Sender) -> Ranges | None:
        """The numbers that a sender's batch is added to; None where they are over."""
        if sender.caller == UNRECORDED:
            return self._unrecorded.setdefault(sender.producer, Ranges())
        caller = self._callers.setdefault(sender.caller, _Caller())
        number = session_number(sender.session) if sender.session else 0
        if number >= caller.next:
            # Frames that are newer than the file of the progress: none of their sessions is given
            # out again.
            caller.set_aside = caller.next = number + 1
        if not sender.producer:
            return None if number <= caller.ended else caller.add(sender.session)
        known = caller.producers.setdefault(sender.producer, _Producer(sender.session))
        if known.session != sender.session:
            if known.session and number < session_number(known.session):
                return None
            known = caller.producers[sender.producer] = _Producer(sender.session)
        return known.ranges


def refusal(verdict: Verdict, sender: Sender, seq: int | None = None) -> Refused:
    """What a sender hears whose batch is neither new nor known to have come."""
    who = f"producer {sender.producer!r}" if sender.producer else "this session"
    words = {
        Verdict.FORGOTTEN: f"whether batch {seq} of {who} came before is not known any more: the newest {MAX_RANGES:,} "
        "ranges of numbers are remembered, and it lies below. Nothing was stored; number upwards, "
        "without gaps",
        Verdict.ENDED: f"the session of {who} is over: a newer one of the producer has begun, or {MAX_SESSIONS:,} newer "
        "ones of this caller. Nothing was stored now; of what was sent before and not acknowledged "
        "it is not known whether "
        "it came. Begin a new session",
        Verdict.UNKNOWN: f"{who} has no such session: use what the stream gave out, with the same credentials and "
        "producer. Nothing was stored",
        Verdict.TOO_MANY: f"a caller may use {MAX_PRODUCERS:,} names of producers in a stream: use one of them, or a "
        "session without a producer",
    }
    details = {} if seq is None or verdict is not Verdict.FORGOTTEN else {"seq": seq}
    return Refused(verdict.value, words[verdict], producer=sender.producer, **details)


def _in_order(batch: Batch) -> tuple[str, str, int, int]:
    sender, seq = batch
    return (
        sender.caller,
        sender.producer,
        session_number(sender.session) if sender.session else 0,
        seq,
    )


def _verdict(ranges: Ranges | None, seq: int) -> Verdict:
    if ranges is None:
        return Verdict.NEW
    return (
        Verdict.DUPLICATE
        if seq in ranges
        else Verdict.FORGOTTEN
        if ranges.forgot(seq)
        else Verdict.NEW
    )


def _unrecorded(body: dict[str, Any] | list[list[int]]) -> Ranges:
    """Numbers whose caller is not known: as an older release wrote them, or as we did since."""
    if isinstance(body, dict):
        return Ranges(**body)
    ranges = Ranges(body)
    # A release that closed gaps counted what was in them as accepted.
    ranges.trim(MAX_RANGES - 1)
    return ranges
