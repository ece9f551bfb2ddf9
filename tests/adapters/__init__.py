"""Metadata, lake and bus: one suite for each protocol, run on every backend, and what is particular
to each backend.
"""
