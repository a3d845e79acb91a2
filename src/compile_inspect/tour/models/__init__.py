"""The models of the tour, written as a user writes them: files that import torch and define a few Targets.

The tour copies them into its folder and loads them from there, so that they are the reader's own: to be opened, changed and
named on the command line.
"""
