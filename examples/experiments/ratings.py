"""How many stars? Vectors of users learned from their ratings of books help to predict those of
music, and the other way round.

Douban: 96,041 ratings of books and 69,709 of music, with the same user ids; only users who are in
both are predicted. The PTK is `Embeddings` at event level (a vector of each user cannot be private
at user level), delta 1e-6, on all ratings of the source. Every seed draws its own fifth of the
target's ratings as test rows.

The downstream model is a ridge regression of the stars on the mean of the user and of the item
among the other ratings it is given (shrunk to the mean of all), and, with a PTK, on the vector of
the user and the stars she gives to an average item of the source. *Non-private* is the same
training at epsilon 1,000.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV  # type: ignore[import-untyped,unused-ignore]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped,unused-ignore]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped,unused-ignore]

from examples.experiments.arms import ptk_arms
from examples.experiments.harness import Experiment, Outcome, Say, Scene, compare
from ptklib.columns.keys import IntegerRange
from ptklib.ptk import Arrays, Ptk
from ptklib.ptks.embeddings import Embeddings

__all__ = ["books", "music"]

Floats = NDArray[np.float64]

_USERS, _BOOKS, _MUSIC = 2_718, 6_777, 5_567
_TRUST = 5.0
_DELTA = "1e-6"


def music(data: Path, fast: bool, say: Say) -> Outcome:
    """Books teach, music is predicted."""
    return _run(
        "douban-music",
        "Stars of music: user vectors from books",
        data,
        ("book", _BOOKS),
        "music",
        fast,
        say,
    )


def books(data: Path, fast: bool, say: Say) -> Outcome:
    """Music teaches, books are predicted."""
    return _run(
        "douban-book",
        "Stars of books: user vectors from music",
        data,
        ("music", _MUSIC),
        "book",
        fast,
        say,
    )


def _run(
    name: str, title: str, data: Path, source: tuple[str, int], target: str, fast: bool, say: Say
) -> Outcome:
    teacher = pd.read_parquet(data / "ratings" / f"douban_{source[0]}.parquet")
    taught = _table(teacher)
    frame = pd.read_parquet(data / "ratings" / f"douban_{target}.parquet")
    frame = frame[frame["user_id"].isin(teacher["user_id"])]
    if fast:
        frame = frame.head(3_000)
    ptk = Embeddings(
        users=IntegerRange(column="user_id", first=1, last=_USERS),
        items=IntegerRange(column="item_id", first=1, last=source[1]),
        value="rating",
        lower=1.0,
        upper=5.0,
        give=("user", "rate"),
    )
    # What the source's items are to the target: nothing it knows.
    asked = _table(frame.assign(item_id=0))
    own = frame[["user_id", "item_id"]].to_numpy(np.float64)
    stars = frame["rating"].to_numpy(np.float64)
    experiment = Experiment(
        name=name,
        title=title,
        error="RMSE of the stars",
        learn=_ridge,
        loss=lambda predicted, answers: float(np.sqrt(np.mean(np.square(predicted - answers)))),
        fractions=(0.01, 0.03, 0.1, 0.3, 1.0),
    )

    def scene(seed: int) -> Scene:
        test, train = np.split(
            np.random.default_rng(seed).permutation(len(frame)), [len(frame) // 5]
        )
        arms = ptk_arms(
            [ptk],
            taught,
            train=asked.take(train),
            test=asked.take(test),
            own=(own[train], own[test]),
            exact=_without_noise,
            delta=_DELTA,
        )
        return Scene(arms=arms, train_answers=stars[train], test_answers=stars[test])

    return compare(experiment, scene, seeds=2 if fast else 15, say=say, fast=fast)


def _without_noise(ptk: Ptk, source: pa.Table) -> Arrays:
    return ptk.train_dp(source.to_batches(), epsilon=1_000, delta=_DELTA)


def _table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame[["user_id", "item_id", "rating"]], preserve_index=False)


def _ridge(train: Floats, stars: Floats, test: Floats) -> Floats:
    """Columns are the user, the item, then features.

    A row of the training set does not see its own answer in the means.
    """
    level = stars.mean()
    columns: list[tuple[Floats, Floats]] = [(train[:, 2:], test[:, 2:])]
    for place, size in ((0, _USERS), (1, max(_BOOKS, _MUSIC))):
        mine, theirs = train[:, place].astype(np.intp), test[:, place].astype(np.intp)
        counts = np.bincount(mine, minlength=size + 1).astype(np.float64)
        sums = np.bincount(mine, weights=stars - level, minlength=size + 1)
        others = (sums[mine] - (stars - level)) / (counts[mine] - 1 + _TRUST)
        columns.append((others[:, None], (sums / (counts + _TRUST))[theirs][:, None]))
    model = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1, 1e5, 11)))
    model.fit(np.hstack([one for one, _ in columns]), stars)
    predicted: Floats = np.clip(model.predict(np.hstack([one for _, one in columns])), 1, 5)
    return predicted
