"""Which experiences are kept: one file a storage."""
