"""Who earns more than 50,000? A training with a price, from preparation to a test, cell by cell.

The people are made up in the form of the census data "Adult"; with ``--data PATH`` they are those
of ``PATH/tabular/adult.parquet``. Everything that is computed of the training people is
differentially private and its cost is added up; the test people are taken for public, to show what
is true.

Run it with ``python -m examples.income [--data PATH]``, or cell by cell (``# %%``) in an editor.
"""

# %%
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories
from ptklib.models.inputs import Input
from ptklib.models.logistic import LogisticRegression
from ptklib.preprocessing import dp_bounds, dp_group_by_mean, dp_histogram
from ptklib.privacy.costs import Cost

DELTA = "1e-6"
RICH = (">50K", "<=50K")
MARITAL = (
    "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
    "Married-spouse-absent", "Married-AF-spouse",
)  # fmt: skip
OCCUPATIONS = (
    "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
    "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing",
    "Transport-moving", "Priv-house-serv", "Protective-serv", "Armed-Forces",
)  # fmt: skip
COLUMNS = [
    "age", "education_num", "hours_per_week", "capital_gain", "marital_status", "occupation",
    "income",
]  # fmt: skip


def people(count: int, seed: int) -> pd.DataFrame:
    """Made-up people: income follows education, age, hours, marriage, and what they own."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.clip(rng.gamma(9, 4.3, count), 17, 90).astype(int),
            "education_num": np.clip(np.rint(rng.normal(10, 2.6, count)), 1, 16).astype(int),
            "hours_per_week": np.clip(np.rint(rng.normal(40, 12, count)), 1, 99).astype(int),
            "capital_gain": np.where(rng.random(count) < 0.08, rng.uniform(200, 15_000, count), 0),
            "marital_status": rng.choice(np.array(MARITAL, dtype=object), count),
            "occupation": rng.choice(np.array(OCCUPATIONS, dtype=object), count),
        }
    )
    score = (
        0.35 * (frame["education_num"] - 11)
        + 0.03 * (frame["hours_per_week"] - 40)
        + 0.04 * np.minimum(frame["age"] - 38, 15)
        + 2.2 * frame["marital_status"].str.startswith("Married-civ")
        + 2.0 * (frame["capital_gain"] > 5_000)
        - 2.0
    )
    rich = rng.random(count) < 1 / (1 + np.exp(-1.6 * score))
    return frame.assign(income=np.where(rich, *RICH))


def read(data: Path | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People to train on, and people to test on."""
    if data is None:
        return people(30_000, seed=1), people(15_000, seed=2)
    whole = pd.read_parquet(data / "tabular" / "adult.parquet")
    test = whole["split"] == "test"
    return whole.loc[~test, COLUMNS], whole.loc[test, COLUMNS]


# %% What is public: the values of categories, and bounds of what has natural ones.
AGE = Bins(column="age", edges=(17, 25, 30, 35, 40, 45, 50, 55, 60, 65, 90))
KNOWN: tuple[Input, ...] = (
    AGE,
    Bins(column="education_num", edges=tuple(range(1, 18))),
    Bins(column="hours_per_week", edges=(0, 20, 35, 40, 41, 46, 51, 61, 100)),
    Categories(column="marital_status", values=MARITAL),
    Categories(column="occupation", values=OCCUPATIONS),
)


# %% A look at the people, which costs.
def look(train: pd.DataFrame) -> Cost:
    """How old they are, and how many hours they work by age."""
    ages = dp_histogram(train, AGE, epsilon=0.05)
    print("ages:", dict(zip(AGE.edges, np.round(ages.shares, 3).tolist(), strict=False)))
    hours = dp_group_by_mean(train, AGE, "hours_per_week", epsilon=0.05, lower=0, upper=99)
    print("hours a week by age:", np.round(hours.table.column("mean").to_numpy(), 1).tolist())
    return ages.cost + hours.cost


# %% Nobody knows how much people gain: bounds are estimated, and the range is cut into bins.
def gains(train: pd.DataFrame) -> tuple[Bins, Cost]:
    """Bins of capital gains up to what nearly nobody exceeds."""
    estimated = dp_bounds(train, ["capital_gain"], epsilon=0.1, tail=0.02, smallest=1)
    _, most = estimated.bounds["capital_gain"]
    print(f"capital gains are at most {most:.0f}, but for about 2% of the people")
    inner = np.linspace(0, max(most, 8.0), 8)[1:]
    # Zero is a bin of its own, and everything beyond the estimate is one.
    return Bins(column="capital_gain", edges=(0.0, 1.0, *inner, 1e9)), estimated.cost


# %% The model: the price is known before it sees anybody.
def train_model(
    train: pa.Table, inputs: tuple[Input, ...], epsilon: float
) -> tuple[LogisticRegression, dict[str, NDArray[np.float64]], Cost]:
    """Logistic regression. The number of people is a public round number, not their count."""
    model = LogisticRegression(inputs=inputs, label="income", classes=RICH, records=30_000)
    cost = model.cost(epsilon, DELTA)
    print(f"the model costs epsilon {cost.epsilon(float(DELTA)):.3f} at a delta of {DELTA}")
    arrays = model.train_dp(train.to_batches(), epsilon=epsilon, delta=DELTA)
    return model, dict(arrays), cost


# %% Is it any good? Test people are public here; with a stream a validator would be asked.
def accuracy(
    model: LogisticRegression, arrays: dict[str, NDArray[np.float64]], test: pa.Table
) -> float:
    """The share of right answers."""
    chosen = np.array(model.chosen(arrays, test).to_pylist())
    return float(np.mean(chosen == test.column("income").to_numpy()))


def main(data: Path | None = None) -> None:
    """All cells in a row."""
    train, test = read(data)
    looked = look(train)
    bins, estimated = gains(train)
    table, public = (
        pa.Table.from_pandas(frame[COLUMNS], preserve_index=False) for frame in (train, test)
    )
    majority = float((test["income"] == RICH[1]).mean())
    print(f"everybody is {RICH[1]}: {majority:.3f} right")
    spent = looked + estimated
    for epsilon in (0.1, 0.8):
        model, arrays, cost = train_model(table, (*KNOWN, bins), epsilon)
        spent += cost
        right = accuracy(model, arrays, public)
        together = spent.epsilon(float(DELTA))
        print(f"logistic: {right:.3f} right; all that was done so far: epsilon {together:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A training with a price, cell by cell.")
    parser.add_argument("--data", type=Path, help="a folder with tabular/adult.parquet")
    main(parser.parse_args().data)
