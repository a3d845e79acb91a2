"""Vectors and matrices: norms, rows without copies, small numerical programs, memory, threads."""
