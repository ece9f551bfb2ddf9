"""Sign-in, requests of other sites, and the headers of every answer."""
