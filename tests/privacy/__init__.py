"""The specification of the privacy core, as tests."""
