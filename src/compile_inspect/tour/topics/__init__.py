"""Topics of the tour after the five phases, one module each."""
