"""Strip plans: a PTK trains on any records, as many as its option asks for."""
