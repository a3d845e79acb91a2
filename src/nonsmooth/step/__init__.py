"""One iteration: local model, steering, line search, corrections, update."""
