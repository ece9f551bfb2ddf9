"""Parts of the benchmark of registrations."""
