"""All that is wrong with a file, told at once.

A part that is at fault is left out, and the others are looked at all the same. Reason:
PROJECT_FAULTS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptklib.errors import InvalidInput

__all__ = ["MOST", "Faults"]

# Whoever has more reads the first ones anyway.
MOST = 50


class Faults:
    """The errors of one file, in the order of its lines."""

    def __init__(self) -> None:
        """None so far."""
        self._errors: list[InvalidInput] = []

    def __bool__(self) -> bool:
        """True where something is wrong."""
        return bool(self._errors)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the error of the block, and go on after it."""
        try:
            yield
        except InvalidInput as error:
            self._errors.append(error)

    def raised_into(self, faults: Faults) -> None:
        """Hand all on but the last, which is raised; nothing where nothing is wrong."""
        if self._errors:
            faults._errors += self._errors[:-1]
            raise self._errors[-1]

    def raised(self) -> None:
        """A single error as it is; several as one, each on a line with its reason."""
        if not self._errors:
            return
        if len(self._errors) == 1:
            raise self._errors[0]
        errors = sorted(self._errors, key=_line)
        lines = [f"{error.message} [{error.reason}]" for error in errors[:MOST]]
        raise InvalidInput(
            "PROJECT_FAULTS",
            "\n".join([*lines, f"{len(errors)} errors, and nothing was done: mend them all"]),
            errors=[
                {"reason": error.reason, "message": error.message, "line": _line(error)}
                for error in errors[:MOST]
            ],
        ) from errors[0]


def _line(error: InvalidInput) -> int:
    line = error.details.get("line")
    return line if isinstance(line, int) else 0
