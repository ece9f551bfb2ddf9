"""Logistic regression: the chance of the second of two classes."""

from ptklib.models.logistic.model import LogisticRegression

__all__ = ["LogisticRegression"]
