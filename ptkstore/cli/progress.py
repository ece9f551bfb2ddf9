"""What a long command is doing now: one line on stderr, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(first: str) -> Iterator[Callable[[str], None] | None]:
    """A function that takes what is happening; None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    import rich.console
    import rich.markup

    with rich.console.Console(stderr=True).status(rich.markup.escape(first)) as line:
        yield lambda text: line.update(rich.markup.escape(text))
