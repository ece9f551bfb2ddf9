"""What a store has: streams, blocks, PTKs, profiles, plans, cycles and states."""
