"""What the notebooks are made of: theme, state, charts. Torch-free, except where a kernel is really run."""
