"""What a partition's log is made of when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.log.health import DirectoryHealth
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.producer_state import ProducerState
from headrace.log.read_verifier import ReadVerifier
from headrace.log.segment_list import SegmentList
from headrace.ports import Disk, Entropy, File

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


@dataclass(slots=True, frozen=True)
class LogSurroundings:
    """What every log of a log directory shares."""

    disk: Disk
    entropy: Entropy
    health: DirectoryHealth
    on_flush_wanted: "Callable[[PartitionLog], None] | None" = None


@dataclass(slots=True)
class LoadedParts:
    """What loading has found in a partition's directory.

    Epochs and producers are loaded when they are first needed, for the log start and end of that moment:
    most partitions of a large node are idle. Loading producers may write snapshots, which want a sync."""

    segments: SegmentList
    verifier: ReadVerifier
    load_epochs: Callable[[int], LeaderEpochs]
    load_producers: Callable[[int, int], tuple[ProducerState, list[File]]]
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    has_topic_id: bool = False
    is_new: bool = False
