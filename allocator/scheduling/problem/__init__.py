"""Instances as values, and what is promised of a stream."""
