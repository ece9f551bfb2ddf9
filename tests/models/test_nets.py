"""Logistic and softmax regression and perceptrons as models: the contract, windows, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import Categories
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.logistic import LogisticRegression
from ptklib.models.mlp import MlpClassifier, MlpRegressor
from ptklib.models.sgd.checkpoint import CheckpointFile
from ptklib.models.sgd.settings import NoisySteps
from ptklib.models.softmax import SoftmaxRegression
from ptklib.testing.model_checks import check_model

SHARED: dict[str, Any] = {
    "inputs": (
        Bounded(column="x", lower=-1, upper=1),
        Categories(column="z", values=("a", "b", "c")),
    ),
    "label": "y",
    "records": 400,
    "training": NoisySteps(steps=5),
}
BY_TAG = NoisySteps(batching="tags", steps=6, rate=1 / 3)
MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(classes=(0, 1), **SHARED),
    "by tag": LogisticRegression(classes=(0, 1), **{**SHARED, "training": BY_TAG}),
    "softmax": SoftmaxRegression(classes=("p", "q", "r"), **SHARED),
    "classifier": MlpClassifier(classes=("p", "q", "r"), hidden=(8,), **SHARED),
    "hidden": MlpRegressor(
        lower=0, upper=5, hidden=(8, 4), activation="tanh", output="hidden", **SHARED
    ),
    "regressor": MlpRegressor(lower=0, upper=5, hidden=(6,), **SHARED),
}
BUDGET: dict[str, Any] = {"epsilon": 2, "delta": 1e-5}


@pytest.mark.parametrize("name", ["logistic", "by tag", "classifier"])
def test_models_keep_the_contract(name: str) -> None:
    check_model(MODELS[name])


@pytest.mark.parametrize("name", ["softmax", "hidden", "regressor"])
def test_models_alike_keep_the_contract(name: str) -> None:
    """All but the audits, which run the same engine."""
    check_model(MODELS[name], leave_out=["audit", "audit_user", "audit_residues"])


@pytest.mark.parametrize("name", MODELS)
def test_a_delta_is_needed(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        MODELS[name].cost(1)
    assert refused.value.reason == "DELTA_NEEDED"


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_of_nothing_makes_a_state_like_any_other(name: str) -> None:
    """And records that are all without a label, or of one class."""
    model = MODELS[name]
    batch = model.example(50)
    nothing = batch.slice(0, 0)
    place = batch.schema.get_field_index("y")
    missing = batch.set_column(place, "y", pa.nulls(50, batch.schema.field("y").type))
    same = batch.set_column(place, "y", pa.array([batch["y"][0].as_py()] * 50))
    shapes = set()
    for batches in ([], [nothing], [missing], [same], [batch]):
        arrays = model.train_dp(batches, **BUDGET)
        model.validate(arrays)
        assert np.isfinite(model.predict(arrays, batch)).all()
        shapes.add(tuple((name, array.shape) for name, array in sorted(arrays.items())))
    assert len(shapes) == 1


@pytest.mark.parametrize("name", ["logistic", "by tag", "classifier"])
def test_training_is_taken_up_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, file = MODELS[name], CheckpointFile(tmp_path / "kept", 2)
    batches = [model.example(300)]
    keep = CheckpointFile.keep

    def killed(self: CheckpointFile, checkpoint: Any) -> None:
        keep(self, checkpoint)
        raise KeyboardInterrupt

    with monkeypatch.context() as planted:
        planted.setattr(CheckpointFile, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            model.train_resumably(batches, file=file, **BUDGET)
    kept = file.read()
    assert kept is not None
    assert kept.step == 2
    model.validate(model.train_resumably(batches, file=file, **BUDGET))
    with pytest.raises(InvalidInput, match="the budget"):
        model.train_resumably(batches, file=file, epsilon=3, delta=1e-5)


def test_windows_of_a_linear_net_count_alike() -> None:
    """A third window moves the state by a third of what it learns."""
    model = LogisticRegression(classes=(0, 1), **SHARED)
    first = model.train_dp([model.example(300)], **BUDGET)
    states = [first]
    for seed in (1, 2):
        states.append(
            model.train_dp([model.example(300, seed=seed)], previous=states[-1], **BUDGET)
        )
    assert [int(state["windows"][0]) for state in states] == [1, 2, 3]


def test_a_run_starts_from_the_previous_state() -> None:
    """Hardly any learning: what was known stays."""
    slow = NoisySteps(steps=3, learning_rate=1e-6)
    model = MlpClassifier(classes=("p", "q", "r"), hidden=(8,), **{**SHARED, "training": slow})
    known = {
        name: array + 1.0 if array.dtype == np.float64 else array
        for name, array in model.train_dp([], **BUDGET).items()
    }
    after = model.train_dp([model.example(300)], previous=known, **BUDGET)
    assert after["layer_0"] == pytest.approx(known["layer_0"], abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        (LogisticRegression, {"classes": (0, 1, 2)}, "classes must be two"),
        (LogisticRegression, {"classes": (0, 1), "penalty": 2.0}, "penalty must be"),
        (LogisticRegression, {"classes": (0, 1), "records": 0}, "records must be"),
        (SoftmaxRegression, {"classes": (0,)}, "classes must be"),
        (MlpClassifier, {"classes": (0, 1), "hidden": ()}, "hidden must be"),
        (MlpClassifier, {"classes": (0, 1), "hidden": (0,)}, "hidden must be"),
        (MlpClassifier, {"classes": (0, 1), "hidden": (4,) * 5}, "hidden must be"),
        (MlpClassifier, {"classes": (0, 1), "hidden": (16383, 16383)}, "at most .* parameters"),
        (MlpRegressor, {"lower": 1.0, "upper": 0.0}, "lower"),
        (
            MlpClassifier,
            {"classes": (0, 1), "training": NoisySteps(clip=(1.0, 1.0, 1.0))},
            "one for each of 2 layers",
        ),
    ],
)
def test_configurations_that_do_not_fit_are_refused(
    kind: Any, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        kind(**{**SHARED, **more})
