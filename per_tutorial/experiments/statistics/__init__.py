"""Estimates with their uncertainty: the bootstrap, intervals, paired comparisons."""
