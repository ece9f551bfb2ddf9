"""Registrations and plans: who may train, at which level, on how many samples."""
