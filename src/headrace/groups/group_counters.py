"""What the group coordinator counts for its metrics. All shards of a node count together."""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounters:
    """Totals since the node started."""

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    consumer_rebalances: int = 0
