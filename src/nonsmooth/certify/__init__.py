"""The independent check of answers; it shares no code with the loop and its steps."""
