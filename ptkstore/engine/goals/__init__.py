"""What PTKs are asked for, a target or an epsilon, in the rows of the metadata."""
