"""Vectors and matrices: norms, rows that are not copied, memory, threads."""
