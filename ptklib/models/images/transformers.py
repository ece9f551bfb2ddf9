"""Public features of images as steps of a scikit-learn pipeline.

::

    model = make_pipeline(ScatteringTransformer(height=28, width=28), LogisticRegression())

Fitting learns nothing: it checks the shape. So cross validation cannot leak through this step, and
it costs no privacy. Input is an array of (images, height * width * channels) numbers; output is
float32. Every number is checked to be there and finite, as scikit-learn does.

Needs the extra ``sklearn`` (scikit-learn 1.6 or newer).

Reasons: CONFIG_INVALID, DATA_SHAPE_INVALID, PACKAGE_MISSING.
"""

from __future__ import annotations

import importlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import SageError
from ptklib.models.images.convolution import RandomConvolution
from ptklib.models.images.normalising import Normalisation
from ptklib.models.images.pixels import Pixels
from ptklib.models.images.scattering import Scattering

try:
    _base: Any = importlib.import_module("sklearn.base")
    _validation: Any = importlib.import_module("sklearn.utils.validation")
    _validate_data: Any = _validation.validate_data
except (ImportError, AttributeError):
    raise SageError(
        "PACKAGE_MISSING",
        "image transformers need scikit-learn 1.6 or newer: pip install 'ptkstore[sklearn]'",
        package="scikit-learn",
    ) from None

__all__ = ["RandomConvolutionTransformer", "ScatteringTransformer"]


_Mixin: Any = _base.ClassNamePrefixFeaturesOutMixin


class _ImageTransformer(_Mixin, _base.TransformerMixin, _base.BaseEstimator):  # type: ignore[misc]
    """What both have in common: a shape, and nothing to learn."""

    height: int
    width: int
    channels: int
    lower: float
    upper: float

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803, ARG002
        """Check the parameters and the shape. No value of the input is used."""
        read = _validate_data(self, X)
        configuration = self._configuration()
        configuration.pixels.read(read[:0])
        self._n_features_out = configuration.size
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Features (images, size), rows in their order."""
        _validation.check_is_fitted(self, "_n_features_out")
        made: NDArray[np.float32] = self._configuration().transform(
            _validate_data(self, X, reset=False)
        )
        return made

    def _pixels(self) -> Pixels:
        return Pixels(
            height=self.height,
            width=self.width,
            channels=self.channels,
            lower=self.lower,
            upper=self.upper,
        )

    def _configuration(self) -> Any:
        raise NotImplementedError


class ScatteringTransformer(_ImageTransformer):
    """`Scattering` as a transformer; parameters are its fields and those of `Pixels`.

    Attributes
    ----------
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        height: int,
        width: int,
        channels: int = 1,
        lower: float = 0.0,
        upper: float = 255.0,
        scales: int = 2,
        angles: int = 8,
        orders: int = 2,
        normalisation: Normalisation = "groups",
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.height, self.width, self.channels = height, width, channels
        self.lower, self.upper = lower, upper
        self.scales, self.angles, self.orders = scales, angles, orders
        self.normalisation = normalisation

    def _configuration(self) -> Scattering:
        return Scattering(
            pixels=self._pixels(),
            scales=self.scales,
            angles=self.angles,
            orders=self.orders,
            normalisation=self.normalisation,
        )


class RandomConvolutionTransformer(_ImageTransformer):
    """`RandomConvolution` as a transformer; parameters are its fields and those of `Pixels`.

    Attributes
    ----------
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        height: int,
        width: int,
        channels: int = 1,
        lower: float = 0.0,
        upper: float = 255.0,
        filters: int = 64,
        side: int = 5,
        grid: int = 4,
        threshold: float = 0.1,
        seed: int = 0,
        normalisation: Normalisation = "groups",
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.height, self.width, self.channels = height, width, channels
        self.lower, self.upper = lower, upper
        self.filters, self.side, self.grid = filters, side, grid
        self.threshold, self.seed = threshold, seed
        self.normalisation = normalisation

    def _configuration(self) -> RandomConvolution:
        return RandomConvolution(
            pixels=self._pixels(),
            filters=self.filters,
            side=self.side,
            grid=self.grid,
            threshold=self.threshold,
            seed=self.seed,
            normalisation=self.normalisation,
        )
