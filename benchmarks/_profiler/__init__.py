"""Parts of the profiler's benchmark: synthetic PTKs whose risks are known, the truth about them,
and its runs.
"""
