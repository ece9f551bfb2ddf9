"""profiler: how many samples a PTK needs at each privacy level.

Pure functions; no I/O, no clock.
"""
