"""What a run tells about itself: times, traces, progress, pictures."""
