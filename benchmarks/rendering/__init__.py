"""Tables and pictures made of the stored results."""
