"""The optimum of a whole instance and bounds on it that need no trust in a solver."""
