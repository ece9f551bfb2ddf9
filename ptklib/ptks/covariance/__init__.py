"""Moments of several columns, and principal components of them."""

from ptklib.ptks.covariance.ptk import Covariance, Moments

__all__ = ["Covariance", "Moments"]
