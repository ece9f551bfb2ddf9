"""Cohorts of users: which block a user belongs to, for life."""
