"""Profiles that are measured: the schedule with its price, the pieces, and the trainings and looks
on them.
"""
