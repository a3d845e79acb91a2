"""Helpers that PyGRANSO's examples import from its private folder."""
