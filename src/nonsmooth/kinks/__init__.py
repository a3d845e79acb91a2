"""Gradients stored from earlier points, for models of functions with kinks."""
