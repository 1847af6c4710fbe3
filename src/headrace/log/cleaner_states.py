"""Which partitions are being compacted, are to stop, or are not to be touched for now."""

import asyncio
from enum import Enum

from headrace.errors import HeadraceError
from headrace.log.cleaner_plan import CleanResult
from headrace.types import TopicPartition


class CleaningStateError(HeadraceError):
    """A partition that is resumed without having been paused."""


class Phase(Enum):
    """What is going on with a partition."""

    IN_PROGRESS = "in progress"
    ABORTING = "to stop"
    PAUSED = "paused"


class Cleaning:
    """The state of one partition that is not simply free to be compacted."""

    __slots__ = ("job", "pauses", "phase", "stopped")

    def __init__(self, phase: Phase, pauses: int = 0) -> None:
        self.phase = phase
        self.pauses = pauses
        self.job: asyncio.Future[CleanResult] | None = None
        self.stopped = asyncio.Event()

    @property
    def is_aborting(self) -> bool:
        """Whether somebody waits for this to stop."""
        return self.phase is Phase.ABORTING


class CleaningStates:
    """The states of all partitions, and the only place that changes them."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[TopicPartition, Cleaning] = {}

    def __contains__(self, partition: object) -> bool:
        return partition in self._states

    def phase(self, partition: TopicPartition) -> Phase | None:
        """What is going on with a partition; None if nothing."""
        state = self._states.get(partition)
        return None if state is None else state.phase

    def of(self, partition: TopicPartition) -> Cleaning:
        """The state of a partition that is in work."""
        return self._states[partition]

    def begin(self, partition: TopicPartition) -> Cleaning:
        """Take a free partition into work."""
        if partition in self._states:
            raise CleaningStateError(f"{partition} is {self._states[partition].phase.value} already")
        state = self._states[partition] = Cleaning(Phase.IN_PROGRESS)
        return state

    def end(self, partition: TopicPartition) -> None:
        """Let go of a partition that was in work; whoever wanted it to stop goes on from here."""
        state = self._states[partition]
        state.job = None
        if state.pauses:
            state.phase = Phase.PAUSED
        else:
            del self._states[partition]
        state.stopped.set()

    async def pause(self, partition: TopicPartition) -> None:
        """Keep a partition from being compacted until `resume`; what is under way is stopped first."""
        state = self._states.get(partition)
        if state is None:
            self._states[partition] = Cleaning(Phase.PAUSED, pauses=1)
            return
        state.pauses += 1
        if state.phase is Phase.PAUSED:
            return
        state.phase = Phase.ABORTING
        if state.job is not None:
            state.job.cancel()
        await state.stopped.wait()

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`."""
        state = self._states.get(partition)
        if state is None or state.phase is not Phase.PAUSED:
            raise CleaningStateError(f"compaction of {partition} cannot be resumed, for it is not paused")
        state.pauses -= 1
        if not state.pauses:
            del self._states[partition]
