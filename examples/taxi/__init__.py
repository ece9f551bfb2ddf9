"""A taxi company shares what it learned, never its rides: a stream, a store, a report.

``python -m examples.taxi``.
"""
