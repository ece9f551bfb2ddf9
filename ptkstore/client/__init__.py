"""A store behind a server: `RemoteStore` speaks the wire contract and needs no engine."""
