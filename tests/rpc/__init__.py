"""The service: contract, server, remote store."""
