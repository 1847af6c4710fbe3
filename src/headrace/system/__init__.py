"""The real clock, disk, network, entropy and worker processes. Chosen at the entry points only."""
