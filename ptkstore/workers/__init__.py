"""Workers: where training happens, outside the process that keeps the book.

``train``  what a worker does with opened blocks: one pass over the data, many PTKs
``pool``   warm processes, started once, replaced when they die
"""
