"""Commands around a server: serve, tokens, console, health, copies."""
