"""Environments side by side: a module for each kind (`dqn.env_specs`)."""
