"""The independent check of answers. It shares no code with the loop and its steps."""
