"""Conclusions from a capture: pure functions from records to findings, each with its evidence."""
