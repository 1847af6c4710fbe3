"""How far a stream is, and how far its next batch goes. One lives on the driver as long as the query runs."""

import time

from headrace.spark.admission import Patience, limited
from headrace.spark.driver import Driver, Plan
from headrace.spark.group_progress import GroupProgress
from headrace.spark.offsets import Offsets
from headrace.spark.options import SourceOptions
from headrace.spark.session import Session


class StreamProgress:
    """Answers Spark's questions about offsets; one question at a time."""

    __slots__ = ("_driver", "_group", "_options", "_patience", "_session", "_target", "latest")

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._session = Session(options.properties)
        self._driver = Driver(self._session.cluster, options)
        self._group = None if options.commit_group is None else GroupProgress(options.commit_group)
        self._patience = None
        if options.min_offsets_per_trigger is not None:
            self._patience = Patience(options.min_offsets_per_trigger, options.trigger_delay_ms_max)
        self._target: Offsets | None = None
        #: The end of all partitions when it was last looked at.
        self.latest: Offsets | None = None

    def first(self) -> Offsets:
        """Where a query begins that has no checkpoint."""
        return self._session.run(self._driver.first_offsets())

    def aim_at_present(self) -> None:
        """From now on nothing counts that comes later than now."""
        self._target = self._session.run(self._driver.latest_offsets(Offsets({}), time.monotonic()))

    def next_end(self, start: Offsets, *, limit: int | None, may_wait: bool) -> Offsets:
        """Where a batch ends that begins at `start`: at most about `limit` offsets later, or at `start` if
        there is too little to begin with."""
        self.processed(start)
        end = self._end(start)
        self.latest = end
        # A query that only wants what is there now would otherwise end before it has all of it.
        waits = may_wait and self._target is None
        if (
            waits
            and self._patience is not None
            and self._patience.waits(start.positions, end.positions, _now_ms())
        ):
            return start
        if limit is None:
            return end
        starts = self._session.run(self._driver.starts(start, end))
        return Offsets(limited(starts, end.positions, limit), end.ids)

    def plan(self, start: Offsets, end: Offsets) -> Plan:
        """The ranges of a batch."""
        return self._session.run(self._driver.plan_stream(start, end))

    def processed(self, offsets: Offsets) -> None:
        """Everything before these offsets has been dealt with: tell the group, if there is one."""
        if self._group is not None:
            self._session.run(self._group.commit(self._session.cluster, offsets))

    def close(self) -> None:
        """Hang up."""
        self._session.close()

    def _end(self, start: Offsets) -> Offsets:
        if self._target is None:
            return self._session.run(self._driver.latest_offsets(start, time.monotonic()))
        self._driver.report_changes(start, self._target)
        return self._target


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
