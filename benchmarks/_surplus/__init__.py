"""Parts of the benchmark of the surplus."""
