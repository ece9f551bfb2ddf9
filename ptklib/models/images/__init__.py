"""Public features of images: a step before a model that costs nothing, for it learns nothing.

`scattering` (wavelets) and `convolution` (filters from a public seed) are configurations with a
known number of features; `pixels` says what an image is, `input` makes features entries of a
model's rows, and `transformers` makes them a step of a scikit-learn pipeline.
"""

from ptklib.models.images.convolution import RandomConvolution
from ptklib.models.images.input import Images
from ptklib.models.images.pixels import Pixels
from ptklib.models.images.scattering import Scattering

__all__ = ["Images", "Pixels", "RandomConvolution", "Scattering"]
