"""The metadata quorum's log: who leads it, what is committed, and its snapshots."""
