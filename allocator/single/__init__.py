"""Plans with one partition: every PTK trains on the same slice."""
