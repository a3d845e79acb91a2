"""The models of the tour, written as a user would write them: files that import torch and define a few Targets.

The tour copies them into its folder and loads them from there, so that readers can open and change them, and name them on
the command line.
"""
