"""The command line, run for real:

``sage`` in a process of its own, on a store in a temporary directory.
"""
