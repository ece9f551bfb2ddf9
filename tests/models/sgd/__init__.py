"""The engine of noisy gradients: sums, batches, prices, checkpoints, audits."""
