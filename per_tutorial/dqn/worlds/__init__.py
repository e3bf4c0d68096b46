"""Where the agents act: Gymnasium's environments, many at once, as transitions."""
