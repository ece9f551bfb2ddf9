"""Blocks on a disk: their frames, ciphers, keys and files, and what was acknowledged of them."""
