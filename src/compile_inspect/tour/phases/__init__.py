"""The five phases of the tour, one module each."""
