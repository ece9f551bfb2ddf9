"""Logistic regression: the chance of the second of two classes."""

from ptklib.models.logistic.model import Logistic

__all__ = ["Logistic"]
