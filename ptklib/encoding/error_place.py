"""An error for logs and for people, without its text: the text of one that is not ours may quote
data, its kind and its place in the code do not.

========================  ====================================================================
`kind_of`                 ``PTK_UNKNOWN`` for one of ours, ``OSError ENOSPC``, ``KeyError``
`place_of`                ``train.py:42``, where it was raised
`failure_of`              ``Refused BUDGET_EXCEEDED at train.py:42``, all that may be told
========================  ====================================================================
"""

from __future__ import annotations

import errno
from pathlib import PurePath

from ptklib.errors import SageError

__all__ = ["failure_of", "kind_of", "place_of"]


def kind_of(error: BaseException) -> str:
    """The reason of an error of ours; the type of any other, with its code where it has one."""
    if isinstance(error, SageError):
        return error.reason
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return type(error).__name__ if code is None else f"{type(error).__name__} {code}"


def place_of(error: BaseException) -> str:
    """The file and the line where an error was raised; empty for one that never was."""
    # Walked by hand: `traceback` would read the source, which a confined worker may not.
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def failure_of(error: BaseException) -> str:
    """The type of an error, its reason where it is one of ours, and its place."""
    reason = f" {error.reason}" if isinstance(error, SageError) else ""
    place = place_of(error)
    return f"{type(error).__name__}{reason}{f' at {place}' if place else ''}"
