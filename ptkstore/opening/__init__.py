"""Which store is meant: a directory, or the address of a server."""
