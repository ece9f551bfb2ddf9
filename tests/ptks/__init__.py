"""Tests of the PTK contract, of the PTKs that keep it and of those that do not."""
