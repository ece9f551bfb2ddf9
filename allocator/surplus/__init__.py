"""What to do with the rest of a window: samples and epsilons beyond the plan of fewest samples."""
