"""The engine: everything that happens to a stream between its records and the states in the lake.

``planning``       profiles and plans, for a window or in the mind
``registrations``  who may train: accepted, or REJECTED with the nearest feasible target
``windows``        which windows are complete; seal, count
``training``       charges of a plan, training in workers, states into the lake
``cycle``          the journalled steps of one window, resumable after a crash at any of them
``doctor``         what can be checked while it runs
``home``           the parts of a store, opened together
"""
