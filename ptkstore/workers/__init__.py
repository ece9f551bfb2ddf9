"""Workers: where training happens, outside the process that keeps the book.

``train``   what a worker does with opened blocks: one pass over the data, many PTKs
``profile`` what it does for a profile: tasks with their records
``process`` the loop of a worker process
``pool``    warm processes, started once, replaced when they die
"""
