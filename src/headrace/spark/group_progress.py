"""A stream's progress in a consumer group, where lag tools look for it. The checkpoint stays the truth."""

import logging
from typing import Final

from headrace.client.admin.committed_offsets import commit_offsets
from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused, ConnectionLost, RequestTimedOut, Unreachable
from headrace.spark.offsets import Offsets

_LOG: Final = logging.getLogger("headrace.spark")
#: A stream waits no longer than this for the group's coordinator; the next batch commits as well.
_PATIENCE_MS: Final = 5_000


class GroupProgress:
    """Commits how far a stream is."""

    __slots__ = ("_committed", "_group")

    def __init__(self, group: str) -> None:
        self._group = group
        self._committed: Offsets | None = None

    async def commit(self, cluster: Cluster, offsets: Offsets) -> None:
        """Commit these offsets, unless later ones were committed already.

        A coordinator that cannot be reached now is a warning: no record depends on it. One that refuses, for
        lack of rights or since the group has members, raises BrokerRefused: that would never work.
        """
        if self._is_behind(offsets):
            return
        try:
            outcomes = await commit_offsets(cluster, self._group, offsets.positions, timeout_ms=_PATIENCE_MS)
        except (Unreachable, ConnectionLost, RequestTimedOut) as problem:
            self._warn(problem)
            return
        except BrokerRefused as refused:
            self._judge(refused)
            return
        for refusal in outcomes.refused.values():
            self._judge(refusal)
        if not outcomes.refused:
            self._committed = offsets

    def _is_behind(self, offsets: Offsets) -> bool:
        if self._committed is None:
            return not offsets.positions
        before = self._committed
        return before.ids == offsets.ids and all(
            position <= before.positions.get(partition, -1)
            for partition, position in offsets.positions.items()
        )

    def _judge(self, refusal: BrokerRefused) -> None:
        if not refusal.is_retriable:
            raise refusal
        self._warn(refusal)

    def _warn(self, problem: Exception) -> None:
        _LOG.warning("progress was not committed to group %r this time: %s", self._group, problem)
