"""What the means of groups may be like: a spread, and in which groups they are far.

A *spread* s is what means differ by, as a part of the range, from half of it down to nothing. Means
are a mixture of normals about a centre, most of them near and a few far (`FAR`): real groups have
outliers. A *model* says what else there may be, and how likely that is beforehand:

* ``drawn``: the mean of n records differs from that of their source by chance, with a part of the
  variance of a coin, m (1-m) / n: small groups differ more. All of it where values are 0 or 1;
* ``whole``: so many of the groups have all of that variance, the others none of it;
* ``far``: so many groups may be anywhere in the range, at its ends in particular, such as sites
  with a single visit. A table must show that plainly;
* ``coins``: so many groups with few records have a mean that is 0 or 1, or anywhere between.

**The prior of a spread** (`prior`) is made for the bar that estimates are judged by: never worse
than the better of the noisy means and the mean of all. Where groups differ by about as much as
noise, all estimates are about as good, and nothing is lost by believing something else; but where
they do not differ at all, a small spread is believed at the price of noise, and where they differ a
lot a small one at the price of bias. So spreads near the noise are thought unlikely beforehand, by
a factor of a thousand in the middle; nothing at all and a lot are left. With even groups and normal
means, the worst error over all spreads beside the better simple way falls by it from 1.27 to 1.15
(5 or 7 groups), 1.14 to 1.1 (10) and 1.11 to 1.02 (24). A search over all priors for the least
worst case gives 1.15, 1.14, 1.08 and 1.02: so few groups cannot do better with these mixtures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "MODELS", "SPREADS", "PriorModel", "prior"]

Floats = NDArray[np.float64]

# By factors of two, as parts of the range, and nothing.
SPREADS: Floats = np.append(np.exp2(-np.arange(1.0, 15.0)), 1e-7)
# How much wider than the spread, squared, and for which part of the groups.
FAR = ((0.3, 0.6), (1.5, 0.3), (10.0, 0.07), (100.0, 0.03))
# In powers of two of spread over noise: the middle and the width of what is unlikely.
_MIDDLE, _WIDTH, _DEPTH = -1.0, 1.6, 7.0
_WIDE = 1.0
# Below, the table shows as good as nothing; such spreads are many and say the same.
_NOTHING, _SAME = -4.5, 1.0


@dataclass(frozen=True, kw_only=True)
class PriorModel:
    """See the module; ``likely`` is the logarithm of the odds beforehand."""

    likely: float = 0.0
    drawn: float = 0.0
    whole: float = 1e-4
    far: float = 1e-4
    coins: float = 0.0


MODELS = (
    PriorModel(),
    PriorModel(likely=-2.0, whole=0.5),
    PriorModel(likely=-1.0, drawn=0.02),
    PriorModel(likely=-1.0, drawn=0.1),
    PriorModel(likely=-1.0, drawn=0.4),
    PriorModel(likely=-7.0, drawn=0.8, coins=0.9),
    PriorModel(likely=-7.0, drawn=0.8, coins=0.8, far=0.1),
    PriorModel(likely=-7.0, far=0.03),
    PriorModel(likely=-7.0, far=0.1),
    PriorModel(likely=-7.0, far=0.3),
)


def prior(shown: Floats) -> Floats:
    """The logarithm of the odds of spreads beforehand, where groups on average show this part of
    their differences: own variance over own variance and noise.
    """
    part = np.clip(shown, 1e-12, 1 - 1e-12)
    powers = np.log2(part / (1 - part)) / 2
    made: Floats = -_DEPTH * np.exp(-np.square((powers - _MIDDLE) / _WIDTH)) - _WIDE * part
    return made - _SAME * np.clip(_NOTHING - powers, 0.0, 1.0)
