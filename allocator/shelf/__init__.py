"""Shelf plans: disjoint partitions, every PTK in exactly one, as in Fig. 4 of the paper."""
