"""The way out: a grant, spent before the first byte is read."""
