"""The page ``docs/internals/mutations.md``."""

from __future__ import annotations

from collections.abc import Sequence

from tests.mutations.running import Outcome

__all__ = ["markdown"]


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The page for these outcomes."""
    caught = sum(one.caught_by is not None for one in outcomes)
    files = len({one.mutation.path for one in outcomes})
    lines = [
        "# Mutations",
        "",
        "Mistakes made on purpose in the code that keeps the promise, one at a time, and the test that noticed each.",
        "Written by `make mutations`; do not edit. The table is in `tests/mutations/`; that it fits the code is tested.",
        "",
        f"{len(outcomes)} mutations in {files} files of `ptklib`, `profiler` and `ptkstore`; {caught} were caught.",
        "",
        "| mutation | file | outcome |",
        "|---|---|---|",
    ]
    lines += [f"| {one.mutation.name} | `{one.mutation.path}` | {_cell(one)} |" for one in outcomes]
    return "\n".join(lines) + "\n"


def _cell(outcome: Outcome) -> str:
    return f"caught by `{outcome.caught_by}`" if outcome.caught_by else f"**{outcome}**"
