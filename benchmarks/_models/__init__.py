"""Parts of the benchmark of models."""
