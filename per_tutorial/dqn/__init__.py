"""An agent that learns from what replay hands out: deep Q-learning for a stack of runs (PyTorch)."""
