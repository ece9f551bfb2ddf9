"""Small programs that show Sage at work."""
