"""Count featurization for labels: does a click lead to a download (TalkingData), does a person earn
more than 50K (Adult)?

Every seed splits the rows anew, at random, into the source of the PTK, the target's rows and test
rows. The model is a logistic regression; its penalty is chosen on a quarter of the rows it is
given.

*Clicks* (``clicks``): one in 440 clicks leads to a download. Without PTKs the model sees app,
channel, system and device as indicators (hashed to 512 columns) and the hour. The PTK counts the
label by app, channel, system, device and address.

*Adult* (``adult``): without PTKs the model sees numbers and indicators. The PTK counts the label by
each of ten columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped,unused-ignore]
from sklearn.metrics import log_loss, roc_auc_score  # type: ignore[import-untyped,unused-ignore]

from examples.experiments.arms import ptk_arms
from examples.experiments.harness import Experiment, Outcome, Say, Scene, compare
from ptklib.columns.keys import Bins, IntegerRange
from ptklib.ptks.counts import Counts
from ptklib.ptks.tables.hashing import Hashed, hash_values

__all__ = ["adult", "clicks"]

Floats = NDArray[np.float64]

_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Looser ones stop long before the optimum, and it is the model with many indicators, the one
# without PTKs, that suffers.
_TOLERANCE = 1e-6
_HASHED_COLUMNS = 512


def clicks(data: Path, fast: bool, say: Say) -> Outcome:
    """Downloads by app, channel, system, device and address."""
    frame = pd.read_parquet(data / "ads" / "talkingdata_100k.parquet")
    frame = frame.assign(
        label=frame["is_attributed"].astype(np.int32), hour=frame["click_time"].dt.hour
    )
    names = ["app", "channel", "os", "device"]
    ptk = Counts(
        keys=(
            IntegerRange(column="app", first=0, last=767),
            IntegerRange(column="channel", first=0, last=511),
            IntegerRange(column="os", first=0, last=1023),
            Hashed(column="device", width=4096),
            Hashed(column="ip", width=65536),
        ),
        label=IntegerRange(column="label", first=0, last=1),
        weights=(3.0, 2.0, 1.0, 1.0, 1.0),
        statistics=("probability",),
    )
    own = np.zeros((len(frame), _HASHED_COLUMNS + 1), dtype=np.float32)
    for place, name in enumerate(names):
        hashed = hash_values(pa.array(frame[name].to_numpy() * len(names) + place), name=name)
        own[np.arange(len(frame)), (hashed % np.uint64(_HASHED_COLUMNS)).astype(np.intp)] = 1
    own[:, -1] = frame["hour"] / 24
    experiment = Experiment(
        name="clicks",
        title="Downloads after clicks: counts by app, channel, system, device, address",
        error="1 - AUC",
        learn=_logistic,
        loss=lambda chances, labels: 1 - float(roc_auc_score(labels, chances)),
        fractions=(0.03, 0.1, 0.3, 1.0),
    )
    return _run(
        experiment,
        ptk,
        frame,
        own,
        source=0.5,
        target=0.3,
        seeds=2 if fast else 20,
        fast=fast,
        say=say,
    )


def adult(data: Path, fast: bool, say: Say) -> Outcome:
    """Income by ten columns."""
    frame = pd.read_parquet(data / "tabular" / "adult.parquet")
    frame = frame.assign(label=(frame["income"] == ">50K").astype(np.int32))
    texts = [
        "workclass",
        "education",
        "marital_status",
        "occupation",
        "relationship",
        "native_country",
    ]
    edges = {
        "age": (17.0, 22.0, 26.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0, 91.0),
        "hours_per_week": (0.0, 20.0, 35.0, 40.0, 41.0, 50.0, 60.0, 100.0),
        "capital_gain": (0.0, 1.0, 3000.0, 5000.0, 7000.0, 10000.0, 100000.0),
        "capital_loss": (0.0, 1.0, 1500.0, 1800.0, 2000.0, 2300.0, 5000.0),
    }
    ptk = Counts(
        keys=(
            *(Hashed(column=name, width=256) for name in texts),
            *(Bins(column=name, edges=ends) for name, ends in edges.items()),
        ),
        label=IntegerRange(column="label", first=0, last=1),
        statistics=("probability",),
    )
    numbers = frame[["age", "education_num", "hours_per_week"]].to_numpy(np.float64)
    money = frame[["capital_gain", "capital_loss"]].to_numpy(np.float64)
    # By round public numbers near their spread, so that one penalty fits all columns. Money as it
    # is and as a logarithm: the one is better with many rows, the other with few, and the model
    # without PTKs shall have the best of both.
    numbers = np.hstack(
        [numbers / [14.0, 2.5, 12.0], money / [7_500.0, 400.0], np.log1p(money) / 2.0]
    )
    own = np.hstack([numbers, pd.get_dummies(frame[[*texts, "race", "sex"]]).to_numpy(np.float64)])
    experiment = Experiment(
        name="adult",
        title="Adult income: counts by ten columns",
        error="log loss",
        learn=_logistic,
        loss=lambda chances, labels: float(
            log_loss(labels, np.clip(chances, 1e-4, 1 - 1e-4), labels=[0, 1])
        ),
        fractions=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    )
    return _run(
        experiment,
        ptk,
        frame,
        own,
        source=0.5,
        target=0.25,
        seeds=2 if fast else 20,
        fast=fast,
        say=say,
    )


def _run(
    experiment: Experiment,
    ptk: Counts,
    frame: pd.DataFrame,
    own: NDArray[np.floating],
    *,
    source: float,
    target: float,
    seeds: int,
    fast: bool,
    say: Say,
) -> Outcome:
    if fast:
        frame, own = frame.head(4_000), own[:4_000, -150:]
    table = pa.Table.from_pandas(frame[list(ptk.columns())], preserve_index=False)
    labels = frame["label"].to_numpy()
    ends = [round(source * len(frame)), round((source + target) * len(frame))]

    def scene(seed: int) -> Scene:
        teach, train, test = np.split(np.random.default_rng(seed).permutation(len(frame)), ends)
        arms = ptk_arms(
            [ptk],
            table.take(teach),
            train=table.take(train),
            test=table.take(test),
            own=(own[train], own[test]),
        )
        width = own.shape[1]
        shaped = {
            name: tuple(
                np.hstack([one[:, :width], _log_odds(one[:, width + 1 :: 2])]) for one in arm
            )
            for name, arm in arms.items()
        }
        return Scene(
            arms={name: (first, second) for name, (first, second) in shaped.items()},
            train_answers=labels[train],
            test_answers=labels[test],
        )

    return compare(experiment, scene, seeds=seeds, say=say, fast=fast)


def _log_odds(chances: Floats) -> Floats:
    """Of the second class: probabilities of a class stand beside those of the other."""
    kept = np.clip(chances, 1e-5, 1 - 1e-5)
    odds: Floats = np.log(kept / (1 - kept))
    return odds


def _logistic(train: Floats, labels: NDArray[np.int32], test: Floats) -> Floats:
    """Probabilities of the second class. With one class only, its share, smoothed."""
    share = (labels.sum() + 0.5) / (len(labels) + 1)
    if labels.min() == labels.max():
        return np.full(len(test), share)
    spread = train.std(axis=0)
    # Indicators keep their scale and their zeros; wide columns such as log odds get theirs. The
    # intercept is free, so shifting columns changes nothing but the speed.
    wide = spread > 1
    middle, scale = np.where(wide, train.mean(axis=0), 0.0), np.where(wide, spread, 1.0)
    rows, asked = (csr_matrix((one - middle) / scale) for one in (train, test))
    hold = len(labels) // 4
    best, least = _PENALTIES[1], np.inf
    if 0 < labels[hold:].sum() < len(labels) - hold and hold >= 10:
        for penalty in _PENALTIES:
            model = LogisticRegression(C=penalty, max_iter=5_000, tol=_TOLERANCE).fit(
                rows[hold:], labels[hold:]
            )
            found = float(log_loss(labels[:hold], model.predict_proba(rows[:hold]), labels=[0, 1]))
            if found < least:
                best, least = penalty, found
    model = LogisticRegression(C=best, max_iter=5_000, tol=_TOLERANCE).fit(rows, labels)
    chances: Floats = model.predict_proba(asked)[:, 1]
    return chances
