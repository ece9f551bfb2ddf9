"""Commands about what a store has: streams, PTKs, plans, budgets, events."""
