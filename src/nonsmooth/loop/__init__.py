"""The main loop: its state, its termination, and its recovery from failed steps."""
