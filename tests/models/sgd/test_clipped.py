"""Sums of clipped gradients: right, whole, of each record by itself, and never too long."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise
from ptklib.models.sgd import clipped
from ptklib.models.sgd.clipped import ClippedSums, steady
from ptklib.models.sgd.encoded import Encoded
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.network import MAX_WEIGHT, Network
from ptklib.models.sgd.plain import PlainSums
from ptklib.models.sgd.whole import CLIP, LENGTH, whole_weights
from tests.models.sgd.nets import NETS, records, weights

Doubles = NDArray[np.float64]

EACH = pytest.mark.parametrize("name", NETS)


def summed(
    network: Network,
    data: Encoded,
    flat: NDArray[np.float32],
    clip: tuple[float, ...] = (1.0,),
    members: NDArray[np.intp] | None = None,
    at_once: int = 10**6,
    step: int = 3,
) -> Doubles:
    """The sum over some members, given in pieces."""
    sums = ClippedSums(network, clip)
    sums.begin(flat, step)
    for piece in data.pieces(np.arange(len(data)) if members is None else members, at_once):
        sums.add(*piece)
    return sums.finish().copy()


def alone(network: Network, data: Encoded, flat: NDArray[np.float32], **more: Any) -> Doubles:
    """What each record adds when it is the only one."""
    places = [np.array([place]) for place in range(len(data))]
    return np.array([summed(network, data, flat, members=place, **more) for place in places])


def gradients(network: Network, data: Encoded, flat: NDArray[np.float32]) -> Doubles:
    """Of each record, in plain float32."""
    sums, scale = PlainSums(network), np.float32(2.0 ** -Forward(network).bits[0])
    rows = [data.rows(np.array([place])) * scale for place in range(len(data))]
    labels = [data.labels[place : place + 1] for place in range(len(data))]
    made = [sums.sums(flat, *pair).copy() for pair in zip(rows, labels, strict=True)]
    return np.array(made, dtype=np.float64)


@EACH
def test_plain_gradients_are_those_of_the_loss(name: str) -> None:
    """Against differences of the loss."""
    network = NETS[name]
    data, flat = records(network, 6, 1), weights(network, 2)
    scale = 2.0 ** -Forward(network).bits[0]
    rows, labels = data.shelves[0].astype(np.float64) * scale, data.labels
    made = gradients(network, data, flat).sum(axis=0)
    generator = np.random.default_rng(3)
    for _ in range(4):
        way, size = generator.normal(size=network.size), 1e-5
        ends = [loss(network, flat + sign * size * way, rows, labels) for sign in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(made @ way, rel=2e-3, abs=2e-3)


def loss(network: Network, flat: Doubles, rows: Doubles, labels: Any) -> float:
    values, matrices = rows, network.matrices(flat)  # type: ignore[arg-type]
    for matrix in matrices[:-1]:
        made = values @ matrix
        made = np.tanh(made) if network.activation == "tanh" else np.maximum(made, 0)
        values = np.hstack([made, np.ones((len(made), 1))])
    scores = values @ matrices[-1]
    if type(network.head).__name__ == "Squared":
        return float(np.square(scores[:, 0] - labels).sum() / 2)
    if network.head.outputs == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    powers = np.exp(scores)
    chances = powers[np.arange(len(labels)), labels.astype(int)] / powers.sum(axis=1)
    return float(-np.log(chances).sum())


@EACH
@pytest.mark.parametrize("clip", [0.05, 1.0, 10.0])
def test_the_sum_is_that_of_clipped_gradients(name: str, clip: float) -> None:
    """Up to what grids lose: little of the sum, and of the noise that it gets in any case."""
    network = NETS[name]
    data, flat = records(network, 300, 1), weights(network, 2)
    wanted = gradients(network, data, flat)
    wanted *= np.minimum(1, clip / np.linalg.norm(wanted, axis=1))[:, None]
    sums = ClippedSums(network, (clip,))
    made = summed(network, data, flat, (clip,)) * sums.unit
    total = wanted.sum(axis=0)
    noise = clip * math.sqrt(network.size)
    assert np.linalg.norm(made - total) < 0.15 * np.linalg.norm(total) + 0.05 * noise
    assert abs(np.linalg.norm(made) / np.linalg.norm(total) - 1) < 0.05 + 0.05 * noise


def test_layers_are_clipped_each_by_its_own_norm() -> None:
    network = NETS["deep"]
    data, flat = records(network, 40, 1), weights(network, 2)
    clip = (0.3, 0.1, 0.2, 0.05)
    wanted = gradients(network, data, flat)
    for gradient in wanted:
        for matrix, norm in zip(network.matrices(gradient), clip, strict=True):
            matrix *= min(1, norm / max(float(np.linalg.norm(matrix)), 1e-9))
    made = alone(network, data, flat, clip=clip) * ClippedSums(network, clip).unit
    apart = np.linalg.norm(made - wanted, axis=1)
    assert np.median(apart) < 0.15 * math.hypot(*clip)
    for one_record in made:
        parts = network.matrices(one_record)
        assert all(
            np.linalg.norm(part) <= norm * 1.1 for part, norm in zip(parts, clip, strict=True)
        )


@EACH
def test_sums_are_whole_and_the_same_however_a_batch_is_cut(name: str) -> None:
    """A record adds the same to the last bit in any order, place and company."""
    network = NETS[name]
    data, flat = records(network, 700, 4), weights(network, 5)
    whole = summed(network, data, flat)
    assert np.array_equal(whole, np.rint(whole))
    shuffled = np.random.default_rng(6).permutation(700)
    for members, at_once in ((None, 37), (shuffled, 10**6), (shuffled, 101)):
        assert np.array_equal(whole, summed(network, data, flat, members=members, at_once=at_once))
    some = np.sort(shuffled[:60])
    singly = sum(summed(network, data, flat, members=np.array([place])) for place in some)
    assert np.array_equal(singly, summed(network, data, flat, members=some))


def test_plain_sums_depend_on_how_a_batch_is_cut() -> None:
    """What exact sums are for: the same check on float32 sums does not hold."""
    network = NETS["relu"]
    data, flat = records(network, 700, 4), weights(network, 5)
    sums = PlainSums(network)
    whole = sums.sums(flat, data.shelves[0], data.labels).copy()
    parts = sums.sums(flat, data.shelves[0][:301], data.labels[:301]).copy()
    parts += sums.sums(flat, data.shelves[0][301:], data.labels[301:])
    assert not np.array_equal(whole, parts)


@EACH
@pytest.mark.parametrize("size", [1e-6, 0.1, 1.0, 30.0, MAX_WEIGHT])
@pytest.mark.parametrize("clip", [1e-6, 0.1, 1e6])
def test_no_record_adds_more_than_the_clipping_norm(name: str, size: float, clip: float) -> None:
    """Exactly, in whole numbers, whatever the weights: joint over all layers."""
    network = NETS[name]
    data, flat = records(network, 30, 7), weights(network, 8, size)
    np.clip(flat, -MAX_WEIGHT, MAX_WEIGHT, out=flat)
    for norms in ((clip,), tuple(clip * (place + 1) for place in range(network.layers))):
        for added in alone(network, data, flat, clip=norms):
            squares = sum(int(number) ** 2 for number in added[added != 0])
            assert squares <= CLIP**2


@EACH
def test_a_clipped_record_is_nearly_as_long_as_the_norm(name: str) -> None:
    """What is lost by aiming below it: little."""
    network = NETS[name]
    data, flat = records(network, 50, 7), weights(network, 8)
    lengths = np.linalg.norm(alone(network, data, flat, clip=(1e-3,)), axis=1) / CLIP
    assert np.median(lengths) > 0.9
    assert lengths.min() > 0.7


def test_sums_at_the_limits_of_float32_are_exact() -> None:
    """Many equal records, each as long as can be: the sum is that many times the first."""
    network = NETS["logistic"]
    data, flat = records(network, 1, 1), weights(network, 1)
    first = summed(network, data, flat, (1e-6,))
    many = np.zeros(3000, dtype=np.intp)
    assert np.array_equal(summed(network, data, flat, (1e-6,), many), 3000 * first)
    # The same in one float32 sum is not.
    column = np.full(30_000, float(np.abs(first).max()) + 1, np.float32)
    assert float(np.cumsum(column)[-1]) != 30_000.0 * float(column[0])


@EACH
def test_what_is_not_a_number_counts_as_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETS[name]
    data, flat = records(network, 20, 1), weights(network, 1)
    right = clipped._squares

    def wrong(rows: Any) -> Doubles:
        made = right(rows)
        made[3] = math.nan
        return made

    monkeypatch.setattr(clipped, "_squares", wrong)
    with_it = summed(network, data, flat)
    monkeypatch.setattr(clipped, "_squares", right)
    others = np.delete(np.arange(20), 3)
    assert np.array_equal(with_it, summed(network, data, flat, members=others))


def test_a_record_that_rounding_makes_too_long_counts_as_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even if every factor were twice too large."""
    network = NETS["relu"]
    data, flat = records(network, 20, 1), weights(network, 1)
    aim = clipped._aim
    monkeypatch.setattr(clipped, "_aim", lambda *given: 2 * aim(*given))
    assert not alone(network, data, flat, clip=(1e-3,)).any()


def test_errors_that_are_small_come_through_at_some_steps() -> None:
    """Rounding is moved from step to step, so the mean over steps is right."""
    network = NETS["logistic"]
    data, flat = records(network, 1, 3), weights(network, 3)
    wanted = gradients(network, data, flat)[0]
    sums = ClippedSums(network, (300.0,))
    steps = [summed(network, data, flat, (300.0,), step=step) for step in range(400)]
    assert len({step.tobytes() for step in steps}) > 1
    mean = np.mean(steps, axis=0) * sums.unit
    assert np.linalg.norm(mean - wanted) < 0.05 * np.linalg.norm(wanted)


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1.0, MAX_WEIGHT])
def test_whole_weights_are_never_too_long(size: float) -> None:
    generator = np.random.default_rng(1)
    for shape in ((1, 1), (3, 700), (5001, 10), (1 << 14, 3)):
        matrix = (generator.normal(size=shape) * size).astype(np.float32)
        out = np.empty_like(matrix)
        unit = whole_weights(matrix, out)
        exact = out.astype(np.float64)
        assert math.log2(unit).is_integer()
        assert np.array_equal(exact, np.rint(exact))
        assert np.square(exact).sum(axis=0).max() <= LENGTH**2
        assert np.square(exact).sum(axis=1).max() <= LENGTH**2
        assert np.abs(exact * unit - matrix).max() <= unit / 2 * 1.0001


@EACH
def test_rows_of_every_layer_are_within_their_length(name: str) -> None:
    network = NETS[name]
    data = records(network, 200, 9)
    for size in (1e-3, 1.0, 300.0):
        flat = np.clip(weights(network, 10, size), -MAX_WEIGHT, MAX_WEIGHT)
        forward, whole = Forward(network), np.empty_like(flat)
        for place, matrix in enumerate(network.matrices(flat)):
            forward.units[place] = whole_weights(matrix, network.matrices(whole)[place])
        piece = next(data.pieces(None, forward.rows_at_once))
        for layer in forward.run(piece[0], piece[1], network.matrices(whole)):
            exact = layer.inputs.astype(np.float64)
            assert np.array_equal(exact, np.rint(exact))
            assert np.array_equal(np.square(exact).sum(axis=1), layer.squares)
            assert layer.squares.max() <= LENGTH**2


def test_a_platform_whose_sums_depend_on_the_place_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = clipped._squares

    def by_place(rows: Any) -> Doubles:
        made = right(rows)
        made[::2] *= 1 + 2.0**-23
        return made

    monkeypatch.setattr(clipped, "_squares", by_place)
    steady.cache_clear()
    try:
        with pytest.raises(InsecureNoise, match="where they stand") as refused:
            steady()
        assert refused.value.reason == "ARITHMETIC_UNSTEADY"
    finally:
        steady.cache_clear()
