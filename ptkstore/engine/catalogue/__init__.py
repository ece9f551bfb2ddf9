"""What a store has: PTKs, their configurations and states, and the plans that were made."""
