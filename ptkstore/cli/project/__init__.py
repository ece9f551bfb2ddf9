"""Projects: what ``sage.yaml`` declares, and making a store so."""
