"""Solvers side by side, each in an environment and a process of its own; see ../solver_quality.py."""
