"""Who gets which block: problems, policies, optima and their proofs. Pure: no I/O, no clock."""
