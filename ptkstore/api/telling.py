"""How an error is told outside: ours as they are. One that is not ours may quote data: it becomes
INTERNAL_ERROR with no text of its own, and the log has its kind and place
(`ptklib.encoding.error_place`).
"""

from __future__ import annotations

from ptklib.errors import SageError

__all__ = ["told"]


def told(error: BaseException) -> SageError:
    """The error as the outside may see it: ours as they are, any other as INTERNAL_ERROR without a
    text.
    """
    if isinstance(error, SageError):
        return error
    return SageError(
        "INTERNAL_ERROR", "something went wrong inside the server; its log knows where"
    )
