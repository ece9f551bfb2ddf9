"""ptkstore: the Sage service around ptklib. So far: the durable journal of the ledger (``ptkstore.ledger``)."""
