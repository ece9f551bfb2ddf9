"""ptklib: differentially private feature models, with no service anywhere.

Sub-packages, lowest first:

``ptklib.errors``
    One tree of errors; each carries a stable UPPER_SNAKE reason.
``ptklib.privacy``
    Amounts, costs, filters, exact noise and mechanisms.
``ptklib.ledger``
    The book of charges as a pure state machine: no I/O, no clock.
``ptklib.testing``
    Tools to test DP code with: distribution checks with power, audits, simulations.
"""
