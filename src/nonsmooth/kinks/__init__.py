"""Gradients kept from earlier points, for models of functions with kinks."""
