"""The engine: everything that happens to a stream between its records and the states in the lake.

``parts``       the parts of a store, opened together
``journal``     the one writer of what windows come to; ``steps/`` is what it writes
``window/``     which windows are complete, and the steps of one, resumable after a crash at any
``profiles/``   how many samples a PTK needs, measured where there is no closed form
``plans/``      who may train, and on what: accepted, or REJECTED with the nearest feasible target
``budgets/``    what was spent, and by whom
``history/``    what happened
``leadership/`` which server runs windows
``safekeeping/`` the doctor, copies and restores
"""
