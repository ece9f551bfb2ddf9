"""Softmax regression: a chance of each of several classes."""

from ptklib.models.softmax.model import SoftmaxRegression

__all__ = ["SoftmaxRegression"]
