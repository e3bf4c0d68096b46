"""Small worlds with knobs, and what a map of them found."""
