"""Prices of records, for options and for heights: what they say of every plan."""
