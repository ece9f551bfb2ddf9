"""What of a store an empirical audit runs: its PTKs as they are configured, and the counts of its
streams' blocks.

Reads what is public of a store (specifications of streams, configurations of PTKs) and nothing
else: no ledger is asked, no grant made, no block opened. Data is invented from the configurations
(`ptklib.auditing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from profiler.auditing import profiler_subjects
from ptklib import registry
from ptklib.auditing.examples import example_ptks
from ptklib.auditing.kinds import ptk_subject
from ptklib.auditing.mechanisms import LEVEL, mechanism_subjects, release_subject
from ptklib.auditing.subject import Subject
from ptklib.auditing.validators import validator_subjects
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PtkView

__all__ = ["COUNT_GROUP", "count_subject", "shipped_subjects", "stored_subject"]

COUNT_GROUP = "block count"
_COUNTED = 100


def shipped_subjects() -> list[Subject]:
    """Everything that comes with Sage: mechanisms, kinds in small configurations, the profiler, the
    validators, a block's count.
    """
    kinds = [ptk_subject(name, ptk) for name, ptk in example_ptks().items()]
    checks = [*profiler_subjects(), *validator_subjects()]
    return [*mechanism_subjects(), *kinds, *checks, count_subject(_example_stream())]


def stored_subject(view: PtkView, spec: StreamSpec) -> Subject:
    """A registered PTK with its own configuration, at the unit of its stream."""
    ptk = registry.make(view.kind, view.config)
    made = ptk_subject(view.name, ptk, records_per_unit=spec.records_per_user)
    about = {**made.about, "stream": spec.name, "configuration": f"version {view.config_version}"}
    return replace(made, group=f"ptk of {spec.name}", about=about)


def count_subject(spec: StreamSpec) -> Subject:
    """The count of a block, at the largest epsilon that the stream's policy and the audit admit.

    The scale of its noise is that of the same code at any epsilon; at the one that streams pay for
    counts, often 0.01, an audit would need millions of runs.
    """
    epsilon = min(Fraction(spec.policy.epsilon), Fraction(LEVEL))
    release = replace(spec, count_epsilon=epsilon).count_release()
    # All records of a user, or all but one: an odd number, so that the lowest bit of the count
    # moves.
    moved = spec.records_per_user if spec.records_per_user % 2 else spec.records_per_user - 1
    name = "block count" if spec.name == _EXAMPLE else f"block count of {spec.name}"
    return release_subject(name, release, [_COUNTED], [_COUNTED + moved], group=COUNT_GROUP)


_EXAMPLE = "example"


def _example_stream() -> StreamSpec:
    columns: Sequence[Column] = (Column(name="at", type="timestamp[ms]", lower="2026-01-01"),)
    return StreamSpec(name=_EXAMPLE, columns=tuple(columns), time_column="at")
