"""Switching off one mechanism of the solver at a time."""
