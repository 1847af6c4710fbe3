"""All that is counted in a node, under the names that Kafka's metrics have. Nothing is counted here."""

import gc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.api.dispatch import Dispatch
from headrace.api.request_stats import register_requests
from headrace.api.services import Services
from headrace.log.partition_log import PartitionLog
from headrace.metadata.partitions import NO_LEADER
from headrace.metadata.service import MetadataService
from headrace.metrics.names import mbean_name
from headrace.metrics.process import register_process
from headrace.metrics.registry import Labels, Number, Registry
from headrace.net.network import Network
from headrace.net.network_metrics import register_network
from headrace.replication.counters import TopicCounters
from headrace.replication.housekeeping import Housekeeping
from headrace.replication.partition import Partition
from headrace.server.group_metrics import bind_groups
from headrace.server.transaction_metrics import bind_transactions
from headrace.system.process import process_state

_TOPIC: Final = ("topic",)
_PARTITION: Final = ("topic", "partition")


@dataclass(slots=True, frozen=True)
class MeasuredParts:
    """The parts of a node that count; `dispatches` by the role of their listeners."""

    network: Network
    dispatches: Mapping[str, Dispatch]
    services: Services
    metadata: MetadataService
    housekeeping: Housekeeping


def bind_metrics(registry: Registry, parts: MeasuredParts) -> None:
    """Let a registry read what the parts of a node count."""
    register_process(registry, process_state)
    register_network(registry, parts.network)
    register_requests(registry, {role: dispatch.stats for role, dispatch in parts.dispatches.items()})
    _bind_topics(registry, parts.services)
    _bind_partitions(registry, parts.services)
    _bind_logs(registry, parts)
    _bind_sessions(registry, parts.services)
    _bind_controller(registry, parts.metadata)
    bind_groups(registry, parts.services)
    bind_transactions(registry, parts.services)
    _bind_collector(registry)


def _bind_topics(registry: Registry, services: Services) -> None:
    def count(name: str, help: str, read: Callable[[TopicCounters], int]) -> None:
        def readings() -> Iterator[tuple[Labels, Number]]:
            for topic in tuple(services.replicas.topics.values()):
                yield (topic.name,), read(topic.counters)

        registry.counts(
            mbean_name("kafka.server", "BrokerTopicMetrics", name) + "_total", help, _TOPIC, readings
        )

    count("MessagesInPerSec", "Records appended.", lambda each: each.messages_in)
    count("BytesInPerSec", "Bytes of records appended.", lambda each: each.bytes_in)
    count("BytesOutPerSec", "Bytes of records sent to consumers.", lambda each: each.bytes_out)
    count("TotalProduceRequestsPerSec", "Appends asked for.", lambda each: each.produce_requests)
    count("FailedProduceRequestsPerSec", "Appends refused.", lambda each: each.produce_requests_failed)
    count("TotalFetchRequestsPerSec", "Reads asked for.", lambda each: each.fetch_requests)
    count("FailedFetchRequestsPerSec", "Reads refused.", lambda each: each.fetch_requests_failed)


def _bind_partitions(registry: Registry, services: Services) -> None:
    replicas = services.replicas

    def gauge(name: str, help: str, holds: Callable[[Partition], bool]) -> None:
        registry.gauge(
            mbean_name("kafka.server", "ReplicaManager", name),
            help,
            lambda: sum(map(holds, replicas.partitions())),
        )

    gauge("PartitionCount", "Partitions on this node.", lambda each: True)
    gauge("LeaderCount", "Partitions that this node leads.", lambda each: each.is_leader)
    gauge("OfflineReplicaCount", "Partitions whose log directory is offline.", lambda each: each.is_offline)
    gauge(
        "UnderReplicatedPartitions",
        "Partitions led here with replicas that are not in sync.",
        lambda each: each.is_under_replicated,
    )
    gauge(
        "UnderMinIsrPartitionCount",
        "Partitions led here that have too few replicas in sync to be written to.",
        lambda each: each.is_under_min_isr,
    )
    registry.gauge(
        mbean_name("kafka.server", "DelayedOperationPurgatory", "PurgatorySize") + "_fetch",
        "Fetches that wait for records.",
        lambda: len({fetch for partition in replicas.partitions() for fetch in partition.parked}),
    )


def _bind_logs(registry: Registry, parts: MeasuredParts) -> None:
    replicas = parts.services.replicas

    def gauge(name: str, help: str, read: Callable[[PartitionLog], int]) -> None:
        def readings() -> Iterator[tuple[Labels, Number]]:
            for partition, log in tuple(replicas.logs.items()):
                yield (partition.topic, str(partition.partition)), read(log)

        registry.gauges(mbean_name("kafka.log", "Log", name), help, _PARTITION, readings)

    gauge("Size", "Bytes in all segments.", lambda log: log.size)
    gauge("LogStartOffset", "The first offset.", lambda log: log.log_start_offset)
    gauge("LogEndOffset", "The offset that the next record gets.", lambda log: log.log_end_offset)
    gauge("HighWatermark", "The offset below which everything is replicated.", lambda log: log.high_watermark)
    gauge("NumLogSegments", "Segments.", lambda log: len(log.segments))
    registry.gauge(
        mbean_name("kafka.log", "LogManager", "OfflineLogDirectoryCount"),
        "Log directories that have failed.",
        lambda: len(replicas.directories.offline),
    )
    flushes = mbean_name("kafka.log", "LogFlushStats", "LogFlushRateAndTimeMs")
    registry.count(
        f"{flushes}_count",
        "Syncs of logs to disk.",
        lambda: sum(directory.health.syncs for directory in replicas.directories),
    )
    registry.count(
        f"{flushes}_sum",
        "Time that syncs of logs took, in ms.",
        lambda: sum(directory.health.sync_ms for directory in replicas.directories),
    )
    scrubber = parts.housekeeping.scrubber
    if scrubber is not None:
        registry.count(
            "headrace_scrub_bytes_total", "Bytes read again and verified.", lambda: scrubber.bytes_read
        )
        registry.count(
            "headrace_scrub_damages_total", "Damaged batches found in them.", lambda: scrubber.damages
        )
    cleaner = parts.housekeeping.cleaner
    if cleaner is not None:
        registry.gauge(
            mbean_name("kafka.log", "LogCleanerManager", "max-dirty-percent"),
            "The dirtiest log's share of bytes that were never compacted, in percent.",
            lambda: round(cleaner.max_dirty_ratio * 100),
        )
        registry.gauge(
            mbean_name("kafka.log", "LogCleanerManager", "uncleanable-partitions-count"),
            "Partitions whose compaction has failed.",
            lambda: sum(map(len, cleaner.uncleanable.values())),
        )


def _bind_sessions(registry: Registry, services: Services) -> None:
    sessions = services.fetch_sessions
    registry.gauge(
        mbean_name("kafka.server", "FetchSessionCache", "NumIncrementalFetchSessions"),
        "Fetch sessions.",
        lambda: len(sessions),
    )
    registry.gauge(
        mbean_name("kafka.server", "FetchSessionCache", "NumIncrementalFetchPartitionsCached"),
        "Partitions in fetch sessions.",
        lambda: sessions.partition_count,
    )
    registry.count(
        mbean_name("kafka.server", "FetchSessionCache", "IncrementalFetchSessionEvictionsPerSec") + "_total",
        "Fetch sessions that were pushed out by others.",
        lambda: sessions.evictions,
    )


def _bind_controller(registry: Registry, metadata: MetadataService) -> None:
    image, quorum = metadata.image, metadata.quorum

    def gauge(name: str, help: str, read: Callable[[], int]) -> None:
        registry.gauge(mbean_name("kafka.controller", "KafkaController", name), help, read)

    gauge("ActiveControllerCount", "1 if this node leads the metadata quorum.", lambda: int(quorum.is_leader))
    gauge(
        "ActiveBrokerCount",
        "Brokers that are registered and let in.",
        lambda: sum(not broker.fenced for broker in image.brokers.values()),
    )
    gauge(
        "FencedBrokerCount",
        "Brokers that are registered and not let in.",
        lambda: sum(broker.fenced for broker in image.brokers.values()),
    )
    gauge("GlobalTopicCount", "Topics of the cluster.", lambda: len(image.topics))
    gauge(
        "GlobalPartitionCount",
        "Partitions of the cluster.",
        lambda: sum(len(topic.partitions) for topic in image.topics.values()),
    )
    gauge(
        "OfflinePartitionsCount",
        "Partitions that nobody leads.",
        lambda: sum(
            partition.leader == NO_LEADER
            for topic in image.topics.values()
            for partition in topic.partitions.values()
        ),
    )
    raft = mbean_name("kafka.server", "raft-metrics", "current-epoch")
    registry.gauge(raft, "The epoch of the metadata quorum.", lambda: quorum.epoch)
    registry.gauge(
        mbean_name("kafka.server", "raft-metrics", "high-watermark"),
        "The offset below which metadata is committed.",
        lambda: quorum.high_watermark,
    )


def _bind_collector(registry: Registry) -> None:
    def collections() -> Iterator[tuple[Labels, Number]]:
        for generation, stats in enumerate(gc.get_stats()):
            yield (str(generation),), stats["collections"]

    registry.counts(
        "python_gc_collections_total", "Runs of Python's garbage collector.", ("generation",), collections
    )
