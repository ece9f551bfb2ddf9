"""The house, checked and drawn from its own imports.

`rules` says what the parts are, from the lowest to the highest, and what else must hold; `imports`
reads the code; `findings` compares the two; `picture` draws what was read. ``python -m
devtools.layers`` prints every finding and exits with 1 if there is one; ``--svg FILE`` draws the
picture that is in docs/internals.
"""
