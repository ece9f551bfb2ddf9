"""How fast each kind of PTK trains beside its exact counterpart; `benchmarks.ptks` runs them."""
