"""Linear regression with differential privacy."""

from ptklib.models.linear.model import LinearRegression

__all__ = ["LinearRegression"]
