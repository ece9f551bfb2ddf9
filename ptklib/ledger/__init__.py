"""The ledger: the append-only book of charges, as a pure state machine. No I/O, no clock, no
randomness.

A *stream* has a policy and blocks. A *slice* is blocks x a range of tags. A *charge* lays a cost on
slices; the loss at a point (block, tag) is the sum of the charges that cover it. One rule serves
all: **a charge is admitted only if no point it covers would exceed the policy.** Disjoint slices
hold disjoint records whatever the data (tags never depend on other records), so charges on them
compose in parallel.

Life of a charge::

    reserve ──► RESERVED ──spend──► SPENT        (never back: the work started)
                   └──release / expire──► RELEASED   (only if the work never started)

``slices``    blocks x tag ranges
``policy``    what a stream promises: unit, epsilon, delta, composition
``loss_map``  the loss of one block, piecewise constant over the tags, in a canonical form
``commands``  what can be asked
``state``     what is so; `evolve` folds one entry into it, `undo` takes the last one back
``decide``    which entries a command leads to, or why it is refused (the precedence of refusals is written there)
``grants``    unforgeable receipts for charges
``mac``       the message authentication code they are signed with
``queries``   what is left, where
``canonical`` JSON with one spelling per value
``snapshot``  the state as canonical bytes, and its digest
"""
