"""Parts of the benchmark of the allocator."""
