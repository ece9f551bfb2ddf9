"""What kinds that keep tables by public keys share: keys, cells, exact sums, noisy totals, and what
they need.
"""
