"""Tasks that need every block of a window: the problem, its policies and its optimum."""
