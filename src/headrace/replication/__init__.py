"""Hosted partitions: who leads them, what readers may see of them, and what is done for them in time."""
