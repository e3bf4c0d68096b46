"""Prioritised replay inside other libraries' agents: one file for each library."""
