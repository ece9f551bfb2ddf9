"""The wire contract in Python, generated from ``proto/`` by ``make proto``. Never edited."""

__all__: list[str] = []
