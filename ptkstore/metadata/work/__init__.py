"""What a store does: operations, leases, where charges lie, and how far parts had come."""
