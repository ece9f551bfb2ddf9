"""Who visits, with which store."""
