"""The loop: its state, how it ends, and how it recovers from steps that fail."""
