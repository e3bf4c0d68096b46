"""Which experiences are kept: one file per storage."""
