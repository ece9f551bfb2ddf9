"""What PTKs are worth to a model that uses them, on public data sets:

``python -m examples.experiments NAME --data PATH``.
"""
