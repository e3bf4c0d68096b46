"""Small worlds with knobs, tables that learn in them from replay, and what a map of them found."""
