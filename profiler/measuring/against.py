"""Hold a supervised PTK against the best constant: the two tasks of `constant`, run on a bench whose
charges are reserved. Costs what ``charged`` of the answer names.
"""

from __future__ import annotations

import math
from typing import cast

from profiler.measuring.bench import Bench
from profiler.measuring.bounds import UNIT
from profiler.measuring.constant import Blinded, Constant
from profiler.measuring.schedule import Schedule
from profiler.measuring.tasks import LookTask, Noise, TrainTask
from ptklib.ptk import Ptk

__all__ = ["measured_constant"]

# Both errors stay within it in 95% of looks: of the noise in so many scales, of the sample in so
# many deviations of losses of 0 and 1.
_SCALES, _DEVIATIONS = 3.7, 2.0


def measured_constant(ptk: Ptk, plan: Schedule, bench: Bench, noise: Noise) -> Constant | None:
    """Train on blinded records, and look at the loss; None where the schedule has no room for it."""
    asked, level = plan.constant, plan.levels[-1]
    if asked is None:
        return None
    # What a task asks of a PTK, it has.
    blinded = cast("Ptk", Blinded(ptk))
    train = TrainTask(
        charge=asked.train,
        ptk=blinded,
        epsilon=level.level,
        delta=plan.terms.delta,
        records_per_unit=plan.terms.records_per_unit,
        lower=None,
        lower_centre=0,
        noise=noise,
    )
    (state,) = bench.run([train])
    charged: tuple[str, ...] = (asked.train.name,) if state.charged else ()
    if state.arrays is None:
        return Constant(None, 0.0, charged)
    centre = level.test.centre
    look = LookTask(asked.look, blinded, (state.arrays,), centre, asked.release, None, noise)
    (answer,) = bench.run([look])
    charged += (asked.look.name,) if answer.charged else ()
    if answer.value is None:
        return Constant(None, 0.0, charged)
    records = level.test.records
    risk = round(min(1.0, max(0.0, level.test.risk(answer.value))), 6)
    sample = _DEVIATIONS * math.sqrt(risk * (1 - risk) * plan.terms.records_per_unit / records)
    error = _SCALES * float(asked.release.scale) / UNIT / records + sample
    return Constant(risk, round(error, 6), charged)
