"""Public features of images: what they are, that they look at one image each, and that anybody
computes the same.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.ndimage import shift
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ptklib import config
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.images import Images, Pixels, RandomConvolution, Scattering
from ptklib.models.images.transformers import (
    RandomConvolutionTransformer,
    ScatteringTransformer,
)
from ptklib.models.images.wavelets import bells, morlets
from ptklib.models.inputs import names_of, width_of
from ptklib.models.rows import InputRows

Kind = Scattering | RandomConvolution

SMALL = Pixels(height=16, width=12, lower=0, upper=1)
KINDS: list[Kind] = [
    Scattering(pixels=SMALL),
    Scattering(pixels=SMALL, normalisation="norm"),
    Scattering(pixels=SMALL, scales=3, angles=4, normalisation="none"),
    Scattering(pixels=Pixels(height=9, width=11, channels=3, lower=-1, upper=1), orders=1),
    RandomConvolution(pixels=SMALL, filters=6, side=3, grid=3),
    RandomConvolution(pixels=Pixels(height=9, width=11, channels=3), filters=5, grid=2),
]


def some(kind: Kind, images: int, *, seed: int = 0) -> NDArray[np.float64]:
    pixels = kind.pixels
    generator = np.random.default_rng(seed)
    return generator.uniform(pixels.lower, pixels.upper, (images, pixels.size))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_size_is_known_before_any_image(kind: Kind) -> None:
    assert kind.transform(some(kind, 3)).shape == (3, kind.size)
    assert kind.transform(some(kind, 0)).shape == (0, kind.size)


def test_sizes_are_those_of_the_formulas() -> None:
    digits = Scattering(pixels=Pixels(height=28, width=28))
    assert (digits.maps, digits.places, digits.size) == (1 + 16 + 64, (7, 7), 3969)
    deep = Scattering(pixels=Pixels(height=28, width=30, channels=2), scales=3, angles=6)
    assert (deep.maps, deep.places) == (1 + 18 + 3 * 36, (4, 4))
    assert deep.size == 2 * 127 * 16


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_features_of_an_image_do_not_depend_on_what_is_beside_it_to_the_last_bit(
    kind: Kind,
) -> None:
    images = some(kind, 150)
    together = kind.transform(images)
    for place in (0, 1, 7, 63, 64, 149):
        assert np.array_equal(kind.transform(images[place : place + 1])[0], together[place])
    assert np.array_equal(kind.transform(images[3:]), together[3:])
    assert np.array_equal(kind.transform(images[::-1]), together[::-1])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_any_shape_and_type_of_the_same_numbers_gives_the_same(kind: Kind) -> None:
    pixels = replace(kind.pixels, lower=0.0, upper=255.0)
    wide = replace(kind, pixels=pixels)
    whole = np.random.default_rng(0).integers(0, 256, (4, pixels.size), dtype=np.uint8)
    shaped = whole.reshape(4, pixels.height, pixels.width, pixels.channels)
    flat = wide.transform(whole)
    assert np.array_equal(flat, wide.transform(shaped))
    assert np.allclose(flat, wide.transform(whole.astype(np.float64)), atol=1e-6)
    scaled = replace(wide, pixels=replace(pixels, lower=0.0, upper=1.0))
    assert np.allclose(flat, scaled.transform(whole / 255), atol=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.norm_bound], ids=str)
@pytest.mark.parametrize("worst", [0.0, 1.0, 1e300, -1e300, math.nan, math.inf])
def test_no_image_is_longer_than_the_bound(kind: Kind, worst: float) -> None:
    images = some(kind, 20)
    images[0], images[1, :3], images[2, ::2] = worst, worst, worst
    features = kind.transform(images)
    assert np.isfinite(features).all()
    assert np.square(features, dtype=np.float64).sum(axis=1).max() <= kind.norm_bound
    assert np.square(features[3:]).sum(axis=1).min() > 0.999


def brute_force(kind: Scattering, image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scattering by the text of the module: every convolution on the whole grid, no thinning."""
    half = 2**kind.scales // 2
    height, width = kind.pixels.height, kind.pixels.width
    rows, columns = kind._grid()
    grid = np.pad(
        image.reshape(height, width),
        ((half, rows - height - half), (half, columns - width - half)),
        mode="symmetric",
    )

    def modulus(signal: NDArray[Any], scale: int, angle: int) -> NDArray[np.float64]:
        wave = morlets(rows, columns, scale, kind.angles)[angle].astype(np.float64)
        return np.asarray(np.abs(np.fft.ifft2(np.fft.fft2(signal) * wave)))

    deviation = 0.8 * 2 ** (kind.scales - 1)
    down, right = (bells(side, 1, deviation, 2**kind.scales) for side in (height, width))
    turns, scales = range(kind.angles), range(kind.scales)
    maps = [grid]
    first = {(j, a): modulus(grid, j, a) for j in scales for a in turns}
    maps += first.values()
    maps += [
        modulus(first[j, a], k, b)
        for j in scales
        for k in range(j + 1, kind.scales)
        for b in turns
        for a in turns
    ]
    return np.stack([down @ each @ right.T for each in maps])


def test_scattering_is_what_its_text_says() -> None:
    """Thinned grids lose a little of what is finer than they are; nothing else may differ."""
    pixels = Pixels(height=28, width=28, lower=0, upper=16)
    kind = Scattering(pixels=pixels, normalisation="none")
    digits = np.kron(load_digits().images[:5], np.ones((3, 3)))
    images = np.pad(digits, ((0, 0), (2, 2), (2, 2)))
    for image, features in zip(images, kind.transform(images), strict=True):
        wanted = brute_force(kind, image / 16)
        made = features.reshape(wanted.shape)
        assert np.abs(made[:9] - wanted[:9]).max() < 1e-6
        error = np.linalg.norm(made - wanted, axis=(1, 2)) / np.linalg.norm(wanted, axis=(1, 2))
        assert error.max() < 0.05


def test_wavelets_see_no_brightness_and_the_direction_they_are_turned_to() -> None:
    waves = morlets(32, 32, 1, 8)
    assert np.abs(waves[:, 0, 0]).max() < 1e-6
    for turn, wave in enumerate(waves):
        down, right = np.unravel_index(wave.argmax(), wave.shape)
        frequency = np.fft.fftfreq(32)[[down, right]]
        assert np.hypot(*frequency) * 2 * np.pi == pytest.approx(3 * np.pi / 8, rel=0.2)
        assert (np.arctan2(*frequency) - np.pi * turn / 8) % np.pi == pytest.approx(0, abs=0.2) or (
            np.pi * turn / 8 - np.arctan2(*frequency)
        ) % np.pi == pytest.approx(0, abs=0.2)


def test_an_image_that_moves_by_a_pixel_changes_little() -> None:
    kind = Scattering(pixels=Pixels(height=28, width=28, lower=0, upper=16))
    digits = np.kron(load_digits().images[:50], np.ones((2, 2)))
    images = np.pad(digits, ((0, 0), (6, 6), (6, 6)))
    moved = np.stack([shift(image, (1, 0), order=0) for image in images])
    features, after = kind.transform(images), kind.transform(moved)
    here = np.linalg.norm(features - after, axis=1)
    others = np.linalg.norm(features - np.roll(features, 1, axis=0), axis=1)
    assert np.median(here) < np.median(others) / 2
    pixel = np.linalg.norm(images - moved, axis=(1, 2)) / np.linalg.norm(images, axis=(1, 2))
    assert np.median(here) < np.median(pixel)


def test_random_filters_are_the_same_for_everybody() -> None:
    """Computed again from the seed, without any of the same code."""
    pixels = Pixels(height=4, width=4, lower=0, upper=1)
    kind = RandomConvolution(
        pixels=pixels, filters=2, side=3, grid=1, threshold=0, normalisation="none", seed=7
    )
    image = np.linspace(0, 1, 16).reshape(4, 4) ** 2
    stream = hashlib.shake_256(b"random convolution" + bytes(7) + b"\x07").digest(8 * 2 * 9)
    words = [int.from_bytes(stream[start : start + 8], "big") >> 12 for start in range(0, 144, 8)]
    normals = [NormalDist().inv_cdf((word + 0.5) / 2**52) for word in words]
    wanted = []
    for drawn in (np.array(normals[:9]), np.array(normals[9:])):
        drawn -= drawn.mean()
        window = (drawn / np.linalg.norm(drawn)).reshape(3, 3)
        places = [(y, x) for y in (0, 1) for x in (0, 1)]
        wanted.append([float((image[y : y + 3, x : x + 3] * window).sum()) for y, x in places])
    above = [np.maximum(sign * np.array(each), 0).mean() for sign in (1, -1) for each in wanted]
    assert kind.transform(image[None])[0] == pytest.approx(above, abs=1e-6)
    assert not np.allclose(replace(kind, seed=8).transform(image[None])[0], above)


def test_random_filters_have_no_mean_and_length_1() -> None:
    """So an even image gives nothing, and no response is above the length of the window."""
    kind = RandomConvolution(
        pixels=SMALL, filters=300, side=4, grid=1, threshold=0, normalisation="none"
    )
    assert np.abs(kind.transform(np.full((1, SMALL.size), 0.7))).max() < 1e-6
    impulse = np.zeros((1, 16, 12))
    impulse[0, 8, 6] = 1
    # Both signs of all places of a filter: the sum of the squares is known, of the moduli bounded.
    total = kind.transform(impulse)[0].reshape(2, 300).sum(axis=0) * 13 * 9
    assert (total <= 4 + 1e-5).all()
    assert total.mean() == pytest.approx(4 * math.sqrt(2 / math.pi), rel=0.03)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_configuration_travels_as_json(kind: Kind) -> None:
    assert config.from_json(type(kind), config.to_json(kind)) == kind
    assert kind in {kind}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pixels(height=3, width=9), "height must be 4"),
        (lambda: Pixels(height=9, width=9, lower=1, upper=1), "less than upper"),
        (lambda: Pixels(height=9, width=9, channels=0), "channels"),
        (lambda: Scattering(pixels=SMALL, scales=4), r"2\*\*scales"),
        (lambda: Scattering(pixels=SMALL, scales=0), "scales must be 1"),
        (lambda: Scattering(pixels=SMALL, angles=0), "angles"),
        (lambda: Scattering(pixels=SMALL, orders=3), "orders"),
        (lambda: RandomConvolution(pixels=SMALL, side=13), "side must be 2 to 12"),
        (lambda: RandomConvolution(pixels=SMALL, grid=9), "grid must be 1 to 8"),
        (lambda: RandomConvolution(pixels=SMALL, threshold=-1.0), "threshold"),
        (lambda: RandomConvolution(pixels=SMALL, seed=-1), "seed"),
        (
            lambda: Images(column="a", features=Scattering(pixels=SMALL, normalisation="none")),
            "must be normalised",
        ),
    ],
)
def test_configurations_that_cannot_be_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize("images", [np.zeros((2, 5)), np.zeros(192), np.full((1, 192), "a")])
def test_what_is_no_image_is_refused(images: NDArray[Any]) -> None:
    with pytest.raises(InvalidInput, match="16 x 12 x 1"):
        KINDS[0].transform(images)


def test_an_image_column_is_entries_of_length_1_at_most() -> None:
    kind = Images(column="picture", features=KINDS[0])
    assert kind.size == width_of(kind) == len(names_of(kind)) == KINDS[0].size
    column = kind.example(30, np.random.default_rng(0))
    steps = kind.steps(column, 4096)
    assert np.array_equal(steps, np.trunc(steps))
    assert np.square(steps).sum(axis=1).max() <= 4096**2
    listed = column.cast(pa.list_(pa.float32()))
    assert np.abs(kind.steps(listed, 4096) - steps).max() <= 1
    alone = [kind.steps(column.slice(place, 1), 4096)[0] for place in range(30)]
    assert np.array_equal(np.stack(alone), steps)


def test_images_are_an_input_of_a_model_beside_others() -> None:
    images = Images(column="picture", features=KINDS[0])
    rows = InputRows((images, Bounded(column="age", lower=0, upper=9)), "centred", None, True)
    assert rows.width == KINDS[0].size + 2
    assert rows.bound == pytest.approx(math.sqrt(3))
    frame = pa.table(rows.example(5, np.random.default_rng(0)))
    matrix = rows.matrix(frame)
    assert np.square(matrix).sum(axis=1).max() <= 3
    assert np.array_equal(matrix[:, :-2] * 4096, images.steps(frame.column(0).chunk(0), 4096))


def test_images_that_are_missing_or_of_another_length_are_images_of_nothing() -> None:
    kind = Images(column="picture", features=KINDS[0])
    column = pa.array([None, [1.0, 2.0], [0.0] * 192, [None] * 192, [1.0] + [0.0] * 191])
    steps = kind.steps(column, 4096)
    assert all(np.array_equal(steps[place], steps[2]) for place in (0, 1, 3))
    assert not np.array_equal(steps[4], steps[2])


@pytest.mark.parametrize("kind", [pa.float64(), pa.list_(pa.string()), pa.list_(pa.float64(), 5)])
def test_a_column_of_no_images_is_refused(kind: pa.DataType) -> None:
    images = Images(column="picture", features=KINDS[0])
    with pytest.raises(InvalidInput, match="lists of 192 numbers"):
        images.steps(pa.nulls(2, kind), 4096)


DIGITS: dict[str, Any] = {"height": 8, "width": 8, "upper": 16}


TRANSFORMERS = [
    ScatteringTransformer(**DIGITS),
    RandomConvolutionTransformer(**DIGITS, side=3),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
def test_transformers_keep_to_the_conventions_of_scikit_learn(transformer: Any) -> None:
    images = load_digits(return_X_y=True)[0][:20]
    fresh = clone(transformer)
    with pytest.raises(NotFittedError):
        fresh.transform(images)
    assert fresh.fit(images) is fresh
    assert fresh.n_features_in_ == 64
    made = fresh.transform(images)
    assert made.dtype == np.float32
    assert np.array_equal(clone(transformer).fit_transform(images), made)
    assert np.array_equal(pickle.loads(pickle.dumps(fresh)).transform(images), made)
    names = fresh.get_feature_names_out()
    assert len(set(names)) == made.shape[1]
    assert names[0] == f"{type(fresh).__name__.lower()}0"
    fresh.set_params(normalisation="none")
    assert fresh.get_params()["normalisation"] == "none"
    assert not np.array_equal(fresh.fit_transform(images), made)
    for wrong in (images[:, :60], np.full((2, 64), np.nan), images[0]):
        with pytest.raises(ValueError, match=r"8 x 8|NaN|1D"):
            clone(transformer).fit(wrong)
    with pytest.raises(InvalidInput, match=r"scales|filters"):
        clone(transformer).set_params(
            **{"scales" if "scales" in transformer.get_params() else "filters": 0}
        ).fit(images)


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
def test_a_step_of_a_pipeline_is_better_than_pixels(transformer: Any) -> None:
    images, labels = load_digits(return_X_y=True)
    train, test = slice(300), slice(800, None)
    model = make_pipeline(clone(transformer), LogisticRegression(C=100, max_iter=2000))
    score = model.fit(images[train], labels[train]).score(images[test], labels[test])
    plain = LogisticRegression(max_iter=2000).fit(images[train] / 16, labels[train])
    assert score > plain.score(images[test] / 16, labels[test])
    names = model[0].get_feature_names_out()
    assert len(names) == model[0].transform(images[:1]).shape[1]
