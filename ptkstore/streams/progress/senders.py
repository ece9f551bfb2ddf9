"""Who a batch comes from: the caller, the name of a producer, and a session.

Numbers (``seq``) count per sender, so two callers never share them, whatever names they give.
``caller`` is who the service found out to call; it is empty for a store that was opened in a
directory and for a server without credentials, which have one caller. A *session* is given out by
the writer of the stream (`Accepted.issue`): ``NUMBER-RANDOM``. Its number grows with every session
of the caller, so that old ones can be forgotten and still be told from new ones; the random part
makes sure that a number which is given out again (after a restore) is another session.

Every frame carries its sender as a text in its header. Names cannot have line breaks, so the parts
are told apart; the caller is a digest, for a header has little room. Frames of releases that knew
no callers carry the producer's name alone: such a sender has the caller `UNRECORDED`. Reasons:
NAME_INVALID, SESSION_INVALID.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import NamedTuple

from ptklib.errors import InvalidInput
from ptklib.ledger.slices import check_name

__all__ = ["UNRECORDED", "Sender", "caller_mark", "new_session", "session_number"]

UNRECORDED = "?"
_SESSION = re.compile(r"([1-9][0-9]{0,17})-[0-9a-f]{16}")
_CALLER_DIGITS = 32


class Sender(NamedTuple):
    """Whose numbers they are.

    ``producer`` is empty only in a session that belongs to no producer in particular.
    """

    caller: str
    producer: str
    session: str = ""

    @classmethod
    def checked(cls, caller: str, producer: str, session: str = "") -> Sender:
        """A sender as a call names it; ``caller`` is a name, and kept as its digest."""
        if producer or not session:
            check_name(producer, "producer")
        if session:
            session_number(session)
        return cls(caller_mark(caller), producer, session)

    @classmethod
    def of_text(cls, text: str) -> Sender:
        """What `text` gave, or the plain name of a producer."""
        parts = text.split("\n")
        return cls(parts[2], parts[0], parts[1]) if len(parts) == 3 else cls(UNRECORDED, text)

    @property
    def text(self) -> str:
        """For the header of a frame."""
        return (
            self.producer
            if self.caller == UNRECORDED
            else f"{self.producer}\n{self.session}\n{self.caller}"
        )


def caller_mark(caller: str) -> str:
    """A short text that stands for the name of a caller; empty for the one caller of a store
    without credentials.
    """
    return hashlib.sha256(caller.encode()).hexdigest()[:_CALLER_DIGITS] if caller else ""


def new_session(number: int) -> str:
    """The session of that number."""
    return f"{number}-{secrets.token_hex(8)}"


def session_number(session: str) -> int:
    """The number of a session. Reason: SESSION_INVALID."""
    match = _SESSION.fullmatch(session)
    if match is None:
        raise InvalidInput(
            "SESSION_INVALID",
            f"a session is what the stream gave out, as it is, got {session!r:.60}",
        )
    return int(match[1])
