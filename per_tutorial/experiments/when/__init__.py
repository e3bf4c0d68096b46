"""When does PER help? Worlds with knobs, a map over them, why it looks so, and a forecast."""
