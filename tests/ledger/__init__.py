"""The specification of the ledger, as tests."""
