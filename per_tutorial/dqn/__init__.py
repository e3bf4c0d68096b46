"""Deep Q-learning from replayed transitions, for a stack of runs (PyTorch)."""
