"""Short chapters of the tour: one topic each, with a run."""
