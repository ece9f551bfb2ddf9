"""Hidden layers of a net, as a configuration: their widths, checked, and what they give as
features.

**Proof note.** *Cost:* none; public numbers, and post-processing of a state.

Reasons: CONFIG_INVALID.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptklib.config import demand
from ptklib.models.sgd.learner import NetLearner
from ptklib.models.sgd.network import MAX_HIDDEN, Activation, Network
from ptklib.models.sgd.settings import MAX_RECORDS
from ptklib.models.sgd.whole import MAX_WIDTH
from ptklib.ptk import Arrays

__all__ = ["HiddenLayers", "Output"]

Floats = NDArray[np.float64]
Output = Literal["prediction", "hidden"]

_MAX_SIZE = 1 << 26


class HiddenLayers(NetLearner, ABC):
    """What both kinds of perceptrons have. Stands before `PriceFirst` among the bases of a kind."""

    hidden: tuple[int, ...]
    activation: Activation
    output: Output

    @abstractmethod
    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        """See `Model`."""

    def _check_layers(self, network: Network) -> None:
        demand(
            1 <= len(self.hidden) <= MAX_HIDDEN
            and all(1 <= width < MAX_WIDTH for width in self.hidden),
            f"hidden must be the widths of 1 to {MAX_HIDDEN} layers, each from 1 to "
            f"{MAX_WIDTH - 1}, got {list(self.hidden)}",
            field="hidden",
        )
        demand(
            network.size <= _MAX_SIZE,
            f"hidden must make at most {_MAX_SIZE} parameters, got {network.size}",
            field="hidden",
        )
        demand(
            1 <= self.records <= MAX_RECORDS,
            f"records must be from 1 to {MAX_RECORDS}, got {self.records}",
            field="records",
        )

    def _given_rows(self, arrays: Arrays, rows: Floats) -> Floats:
        """The last hidden layer, or the prediction."""
        if self.output == "hidden":
            values, _, _ = self._hidden(arrays, rows, len(self.hidden))
            return values[:, :-1]
        return self._predicted(arrays, rows).reshape(len(rows), -1)

    def _given_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        if self.output == "hidden":
            return tuple(f"hidden_{place}" for place in range(self.hidden[-1]))
        return names
