"""Small nets and records for the tests of the engine."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.sgd.encoded import Encoded, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.heads import Head, Logistic, Softmax, Squared
from ptklib.models.sgd.network import Network

NETS = {
    "logistic": Network(7, (), "relu", Logistic(), math.sqrt(7)),
    "softmax": Network(40, (), "relu", Softmax(5), 1.5),
    "relu": Network(12, (40,), "relu", Softmax(3), math.sqrt(12)),
    "deep": Network(12, (24, 9, 17), "relu", Squared(), math.sqrt(12)),
    "tanh": Network(12, (24, 9), "tanh", Softmax(4), math.sqrt(12)),
    "wide": Network(3, (700,), "relu", Logistic(), math.sqrt(3)),
}


def net(inputs: int, head: Head, hidden: tuple[int, ...] = ()) -> Network:
    """With rows in the cube."""
    return Network(inputs, hidden, "relu", head, math.sqrt(inputs))


def weights(network: Network, seed: int, size: float = 1.0) -> NDArray[np.float32]:
    """Random ones at every layer."""
    generator = np.random.default_rng(seed)
    flat = np.empty(network.size, np.float32)
    for matrix in network.matrices(flat):
        matrix[:] = generator.normal(size=matrix.shape) * size / math.sqrt(len(matrix))
    return flat


def records(network: Network, count: int, seed: int) -> Encoded:
    """Rows in the ball of the bound, labels of every kind."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (count, network.inputs))
    rows *= min(1.0, network.bound / math.sqrt(network.inputs))
    encoder = Encoder(network.inputs, Forward(network).bits[0])
    encoder.add(np.trunc(rows * STEPS), labels(network, generator, count))
    return encoder.done()


def labels(network: Network, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Codes of classes, or numbers."""
    if isinstance(network.head, Squared):
        return generator.uniform(-1, 1, count)
    return generator.integers(0, max(2, network.head.outputs), count).astype(np.float64)
