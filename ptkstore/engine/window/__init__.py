"""The cycle of a window: seal, count, profile, plan, charge, train, publish, expire."""
