"""Hosted partitions: who leads them, what readers may see of them, and what has to be done for them in time."""
