"""One of several trainings, chosen by how well it did, at its true price.

Trying k settings and keeping the best costs all k. These cost less. Import from the modules:

``stopping``   how often to try: laws of a random number of runs that do not know the data
``best``       the best of a random number of runs, on all records
``disjoint``   each candidate on a part of its own, the choice on another: exponential mechanism
``coins``      exact draws of the laws
"""
