"""A store in a directory: `LocalStore` calls the engine."""
