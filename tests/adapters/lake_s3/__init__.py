"""The lake in a bucket."""
