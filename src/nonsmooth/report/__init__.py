"""Reports of a run: times, traces, progress, plots."""
