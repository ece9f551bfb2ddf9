"""One servicer for each service of the wire contract."""
