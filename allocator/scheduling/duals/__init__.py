"""Prices of blocks, and the bounds that they prove."""
