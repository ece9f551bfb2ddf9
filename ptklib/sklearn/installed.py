"""scikit-learn, where it is installed: imported here and nowhere else.

Reasons: PACKAGE_MISSING.
"""

from __future__ import annotations

import importlib
from typing import Any

from ptklib.errors import SageError

__all__ = ["base", "multiclass", "validate_data", "validation"]

try:
    base: Any = importlib.import_module("sklearn.base")
    multiclass: Any = importlib.import_module("sklearn.utils.multiclass")
    validation: Any = importlib.import_module("sklearn.utils.validation")
    validate_data: Any = validation.validate_data
except (ImportError, AttributeError):
    raise SageError(
        "PACKAGE_MISSING",
        "ptklib.sklearn needs scikit-learn 1.6 or newer: pip install 'ptkstore[sklearn]'",
        package="scikit-learn",
    ) from None
