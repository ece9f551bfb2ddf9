"""Parts of `benchmarks.accuracy`: data sets, diffprivlib in an environment of its own, and our PTKs
on the same tasks.
"""
