"""Which of several servers leads, and whether it can."""
