"""Multilayer perceptrons: dense nets with hidden layers, for classes and for numbers."""

from ptklib.models.mlp.classifier import MlpClassifier
from ptklib.models.mlp.regressor import MlpRegressor

__all__ = ["MlpClassifier", "MlpRegressor"]
