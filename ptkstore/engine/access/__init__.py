"""Who may ask, what was asked before, and the log of it: tokens, requests, audit entries."""
