"""Draw how a run went."""
