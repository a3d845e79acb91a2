"""Visible kinks: kinks read from the graph that autograd records, instead of being detected at trial points."""

from nonsmooth.structure.arguments import Arguments
from nonsmooth.structure.blocks import UNSEEN
from nonsmooth.structure.constraints import ConstraintReading, read_constraints
from nonsmooth.structure.kink_reading import UNWATCHED, Reading, read, unreadable
from nonsmooth.structure.local import LocalTerms
from nonsmooth.structure.summary import KinkSource, Structure, summarize
from nonsmooth.structure.terms import Terms

__all__ = [
    "UNSEEN",
    "UNWATCHED",
    "Arguments",
    "ConstraintReading",
    "KinkSource",
    "LocalTerms",
    "Reading",
    "Structure",
    "Terms",
    "read",
    "read_constraints",
    "summarize",
    "unreadable",
]
