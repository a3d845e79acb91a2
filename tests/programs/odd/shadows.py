"""Imports its own `calendar`, which lies beside it."""

import calendar

print(calendar.OWN)
