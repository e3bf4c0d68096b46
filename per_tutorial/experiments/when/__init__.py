"""When does PER help? Worlds with knobs, a map over them, its explanation, and a forecast."""
