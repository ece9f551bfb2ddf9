"""What the cycle of a window writes down as it goes: one type for each kind of row."""
