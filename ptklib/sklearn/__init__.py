"""scikit-learn: states as a step of a pipeline (`PtkTransformer`), and models as estimators.

Needs the extra ``sklearn`` (scikit-learn 1.6 or newer); nothing else in `ptklib` imports
scikit-learn.

Reasons: PACKAGE_MISSING.
"""

from ptklib.sklearn.nets import DPLogisticRegression, DPMLPClassifier, DPMLPRegressor
from ptklib.sklearn.regression import DPLinearRegression
from ptklib.sklearn.transformer import PtkTransformer

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPMLPClassifier",
    "DPMLPRegressor",
    "PtkTransformer",
]
