"""allocator: plans that give every PTK its epsilon and its samples.

Pure functions; no I/O, no clock.
"""
