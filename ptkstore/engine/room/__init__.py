"""Whether there is room for a training, told from public numbers before anything is opened."""
