"""What pages are made of: a request of a visitor, templates, lists, files."""
