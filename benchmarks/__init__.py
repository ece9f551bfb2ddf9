"""Speed, memory and accuracy, shown as ratios against a named baseline in the same run.

See ``__main__``.
"""
