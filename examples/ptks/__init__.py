"""One small example for each kind of PTK: ``python -m examples.ptks.<kind>``."""
