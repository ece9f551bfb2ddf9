"""The specification of Sage, as tests."""
