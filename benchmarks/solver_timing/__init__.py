"""How long solvers take, each in a process of its own; see ../solver_speed.py."""
