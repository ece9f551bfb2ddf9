"""A small configuration of every kind that comes with Sage, for an audit that needs no store.

Small, because many trainings are run; with every mechanism that the kind can release by.
"""

from __future__ import annotations

from typing import Any

from ptklib.columns.keys import Bins, IntegerRange
from ptklib.models.linear import LinearRegression
from ptklib.ptk import Ptk
from ptklib.ptks.additive import Additive
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.counts import Counts
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.embeddings import Embeddings
from ptklib.ptks.forest import Forest
from ptklib.ptks.interactions import Interactions
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.ratios import Ratios
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.vectors import Bounded

__all__ = ["example_ptks"]


def example_ptks() -> dict[str, Ptk]:
    """By name: the kind, and the mechanism where the kind has several."""
    zone = IntegerRange(column="zone", first=0, last=2)
    value: dict[str, Any] = {"value": "speed", "lower": 0.0, "upper": 100.0}
    plane = tuple(Bounded(column=name, lower=-1.0, upper=1.0) for name in ("x", "y"))
    inputs = tuple(Bins(column=name, edges=(0.0, 1.0, 2.0, 3.0)) for name in ("a", "b"))
    people: dict[str, Any] = {
        "users": IntegerRange(column="user", first=0, last=3),
        "items": IntegerRange(column="item", first=0, last=3),
    }
    return {
        "statistics, laplace": Statistics(keys=(zone,), statistics=("mean",), **value),
        "statistics, gaussian": Statistics(
            keys=(zone,), statistics=("mean",), mechanism="gaussian", **value
        ),
        "quantiles, laplace": Quantiles(keys=(zone,), quantiles=(0.5,), bins=8, **value),
        "quantiles, gaussian": Quantiles(
            keys=(zone,), quantiles=(0.5,), bins=8, mechanism="gaussian", **value
        ),
        "ratios": Ratios(
            keys=(zone,),
            numerator="tip",
            denominator="fare",
            denominator_upper=50.0,
            ratio_upper=1.0,
        ),
        "counts": Counts(keys=(zone,), label=IntegerRange(column="click", first=0, last=1)),
        "covariance, wishart": Covariance(values=plane, components=1),
        "covariance, gaussian": Covariance(values=plane, components=1, mechanism="gaussian"),
        "clusters, grid": Clusters(values=plane, clusters=2, method="grid", nodes=3),
        "clusters, lloyd": Clusters(values=plane, clusters=2, method="lloyd", iterations=2),
        "clusters, gaussian": Clusters(
            values=plane, clusters=2, method="lloyd", iterations=2, mechanism="gaussian"
        ),
        "forest, guided": Forest(
            inputs=inputs[:1], label="c", classes=("no", "yes"), trees=2, depth=1, splits="guided"
        ),
        # Most of the budget for the leaves: an index tells less than numbers do, and of the large
        # margin mechanism only a third of a third can be seen in it.
        "forest, exponential": Forest(
            inputs=inputs,
            label="c",
            classes=("no", "yes"),
            trees=1,
            depth=1,
            splits="exponential",
            split_share=0.25,
        ),
        "forest, margin": Forest(
            inputs=inputs,
            label="c",
            classes=("no", "yes"),
            trees=1,
            depth=1,
            splits="margin",
            split_share=0.25,
        ),
        "interactions, laplace": Interactions(
            keys=inputs, label="c", classes=("no", "yes"), statistics=("count",)
        ),
        "interactions, gaussian": Interactions(
            keys=inputs, label="c", lower=0.0, upper=1.0, mechanism="gaussian"
        ),
        "additive, laplace": Additive(
            inputs=inputs[:1], label="c", classes=("no", "yes"), rounds=1
        ),
        "additive, gaussian": Additive(
            inputs=inputs[:1], label="c", classes=("no", "yes"), rounds=1, mechanism="gaussian"
        ),
        **_models(plane),
        # So few records would not be worth tastes.
        "embeddings": Embeddings(
            **people, value="rating", lower=0.0, upper=5.0, factors=2, rounds=1, tastes="always"
        ),
    }


def _models(plane: tuple[Bounded, ...]) -> dict[str, Ptk]:
    # Without AdaSSP: at the delta of an audit the noise of its paper is worth an epsilon near 0.
    number: dict[str, Any] = {"label": "c", "lower": 0.0, "upper": 1.0}
    return {
        "linear regression, boosted": LinearRegression(inputs=plane[:1], rounds=1, **number),
        "linear regression, moments": LinearRegression(inputs=plane, mechanism="moments", **number),
        "linear regression, laplace": LinearRegression(
            inputs=plane[:1], mechanism="laplace", **number
        ),
    }
