"""Which experiences are replayed: one file per sampler."""
