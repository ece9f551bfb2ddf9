"""AdaSSP as it was published: sufficient statistics with an adaptive ridge (Wang 2018), the
reference that the default is measured against.

With a third of epsilon each: the least eigenvalue of X'X, from which a high bound of its noise is
subtracted; X'X; and X'y. The ridge is what that eigenvalue leaves of
sqrt(d log(6/delta) log(2 d^2/rho)) |X|^2 / (epsilon/3), with rho = 1/20, and the coefficients are
(X'X + ridge)^-1 X'y. Labels are taken as they are, over the largest absolute bound: they are not
centred, and the ridge draws predictions to 0.

**Proof note.** *Unit:* one record, or a user with at most r records. *Neighbours:* add or remove
one. *Sensitivity:* an eigenvalue of X'X moves by at most |x|^2 <= L (Weyl); it is computed with an
error of some 2**-52 d |X'X|, below 2**-10 L as long as n d < 2**40, which is added. X'X: 5 L with
the weights of `structure`. X'y: sqrt(L) `GRAIN`. r records: r times as much. *Cost:* that of the
three Gaussians, whose noise is that of the paper, sqrt(log(6/delta)) / (epsilon/3) for a
sensitivity of 1, or what (epsilon, delta) needs where that is more (large epsilons). Less than
(epsilon, delta) is spent: the paper adds up three parts where their exact sum is smaller.
"""

from __future__ import annotations

import numpy as np

from ptklib.models.inputs import STEPS
from ptklib.models.labels import NumberLabel
from ptklib.models.linear.fitted import Fitted
from ptklib.models.linear.plans import AdasspPlan
from ptklib.models.linear.reading import labelled
from ptklib.models.linear.structure import GRAIN, OFF, ON, Structure
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Batches

__all__ = ["adassp"]


def adassp(
    structure: Structure,
    target: NumberLabel,
    plan: AdasspPlan,
    batches: Batches,
    noise: BitSource | None,
) -> Fitted:
    """Coefficients by the three releases of the plan."""
    width = structure.width
    most = max(abs(target.lower), abs(target.upper))
    products = np.zeros((width, width), dtype=np.int64)
    sums = np.zeros(width, dtype=np.int64)
    for piece in labelled(structure, target, batches):
        rows = structure.grains(piece.rows)
        label = (target.middle + target.half * piece.label / STEPS) * (GRAIN / most)
        values = np.clip(np.rint(label), -GRAIN, GRAIN)
        products += (rows.T @ rows).astype(np.int64)
        sums += (rows.T @ values).astype(np.int64)
    least = int(np.floor(np.linalg.eigvalsh(products.astype(np.float64))[0]))
    smallest = float(plan.smallest.release([least], source=noise).values[0])
    above = np.triu_indices(width)
    weights = np.where(above[0] == above[1], ON, OFF)
    released = plan.products.release(products[above] * weights, source=noise).values / weights
    labels = plan.label.release(sums, source=noise).values.astype(np.float64)
    noisy = np.zeros((width, width))
    noisy[above] = released
    noisy = noisy + np.triu(noisy, 1).T
    # In steps throughout: products of two entries, and of an entry and the label.
    ridge = max(0.0, plan.ridge - max(0.0, smallest - plan.below))
    matrix = noisy + ridge * np.eye(width)
    inverse = np.linalg.pinv(matrix, hermitian=True)
    slopes = inverse @ labels * (most / target.half)
    deviation = float(plan.label.sigma) * (most / target.half)
    covariance = deviation**2 * inverse @ inverse
    slopes[-1] -= target.middle / target.half
    records = max(float(noisy[-1, -1]) / GRAIN**2, 1.0)
    return Fitted(slopes, (covariance + covariance.T) / 2, records, 1.0)
