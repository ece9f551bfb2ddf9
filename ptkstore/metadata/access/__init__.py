"""Who may do what, who did it, and what they were answered."""
