"""Copies, restoring, and everything the doctor looks at."""
