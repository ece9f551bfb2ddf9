"""Embeddings of users and items from ratings or counts, by private Poisson factorization."""

from ptklib.ptks.embeddings.ptk import MAX_NUMBERS, Embeddings

__all__ = ["MAX_NUMBERS", "Embeddings"]
