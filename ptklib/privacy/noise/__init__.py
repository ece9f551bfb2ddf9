"""Exact integer noise and the bits it is made of."""
