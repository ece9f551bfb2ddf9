"""Deployment: what is in deploy/, and what the guides for operators promise."""
