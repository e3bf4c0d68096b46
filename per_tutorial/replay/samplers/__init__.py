"""Which experiences are replayed: one file a sampler."""
