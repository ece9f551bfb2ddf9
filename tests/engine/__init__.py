"""The specification of the engine, as tests."""
