"""Every picture: plans, profiles and the ledger as SVG, as text and as PNG."""
