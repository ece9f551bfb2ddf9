"""Profiles that a window measures."""
