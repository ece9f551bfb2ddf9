"""The tools of those who work on the project: set-up, locks, pages made from the code."""
