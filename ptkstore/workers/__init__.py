"""Workers: where training and profiling happen, outside the process that keeps the book.

``protocol``   the treaty: jobs, what becomes of them, how they reach records
``processes``  warm processes, started once, replaced when they die; ``loop`` is what runs in one
``inline``     the same in the engine's own process
``train``      what a worker does with opened blocks: one pass over the data, many PTKs
``profile``    what it does for a profile: tasks with their records
"""
