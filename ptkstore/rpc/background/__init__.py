"""What a server does without being asked."""
