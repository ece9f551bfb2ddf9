"""The specification of workers, as tests: one suite for every kind of them."""
