"""The console over real HTTP, and in a real browser."""
