"""What happened, who wants to hear of it, and who was told."""
