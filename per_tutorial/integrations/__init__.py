"""Prioritised replay inside other libraries' agents, a module for each library."""
