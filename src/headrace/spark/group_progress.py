"""A stream's progress in a consumer group, where lag tools look for it. The checkpoint stays the truth."""

from headrace.client.cluster import Cluster
from headrace.spark.offsets import Offsets


class GroupProgress:
    """Commits how far a stream is."""

    __slots__ = ("_committed", "_group")

    def __init__(self, group: str) -> None:
        self._group = group
        self._committed: Offsets | None = None

    async def commit(self, cluster: Cluster, offsets: Offsets) -> None:
        """Commit these offsets, unless they were the last ones."""
