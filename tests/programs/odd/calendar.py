"""A module of the program's own with the name of one in the standard library."""

OWN = True
