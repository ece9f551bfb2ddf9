"""What a stream promises, what was charged and what is left."""
