"""How values become bytes:

JSON with one spelling, and the one message authentication code. Imports nothing but errors.
"""
