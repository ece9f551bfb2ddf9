"""Softmax regression: a chance of each of several classes."""

from ptklib.models.softmax.model import Softmax

__all__ = ["Softmax"]
