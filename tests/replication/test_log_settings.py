"""Every topic key that a log heeds reaches it."""

from dataclasses import fields

import pytest

from headrace.config.node import NodeConfig
from headrace.config.topic import effective_topic_config
from headrace.log.settings import CleanerSettings, LogSettings, ProducerStateSettings
from headrace.replication.log_settings import cleaner_settings, producer_state_settings, topic_settings
from tests.support_data import PROPERTIES

CHANGED = {
    "cleanup.policy": "compact",
    "compression.type": "zstd",
    "compression.gzip.level": "3",
    "compression.lz4.level": "4",
    "compression.zstd.level": "5",
    "delete.retention.ms": "11",
    "file.delete.delay.ms": "12",
    "flush.messages": "13",
    "flush.ms": "14",
    "index.interval.bytes": "15",
    "max.compaction.lag.ms": "16",
    "max.message.bytes": "17",
    "message.timestamp.after.max.ms": "18",
    "message.timestamp.before.max.ms": "19",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
    "min.compaction.lag.ms": "2",
    "preallocate": "true",
    "retention.bytes": "21",
    "retention.ms": "22",
    "segment.bytes": "2000000",
    "segment.index.bytes": "24",
    "segment.jitter.ms": "25",
    "segment.ms": "26",
}


def test_a_topic_that_sets_nothing_has_the_defaults() -> None:
    assert topic_settings(effective_topic_config({}, {})).log == LogSettings()


def test_every_key_changes_its_field_and_no_field_is_left_out() -> None:
    changed = topic_settings(effective_topic_config(CHANGED, {})).log
    defaults = LogSettings()
    same = [
        each.name for each in fields(changed) if getattr(changed, each.name) == getattr(defaults, each.name)
    ]
    assert same == []


@pytest.mark.parametrize(
    ("policy", "delete", "compact"),
    [("delete", True, False), ("compact", False, True), ("compact,delete", True, True)],
)
def test_both_policies_may_hold(policy: str, delete: bool, compact: bool) -> None:
    settings = topic_settings(effective_topic_config({"cleanup.policy": policy}, {})).log
    assert (settings.cleanup_delete, settings.cleanup_compact) == (delete, compact)


def test_the_broker_gives_what_the_topic_does_not_set() -> None:
    config = NodeConfig(PROPERTIES | {"log.retention.hours": "1", "min.insync.replicas": "2"})
    settings = topic_settings(effective_topic_config({}, config.topic_defaults()))
    assert (settings.log.retention_ms, settings.min_insync_replicas) == (3_600_000, 2)


def test_the_brokers_own_bounds() -> None:
    config = NodeConfig(PROPERTIES)
    assert cleaner_settings(config) == CleanerSettings()
    assert producer_state_settings(config) == ProducerStateSettings()
    throttled = NodeConfig(PROPERTIES | {"log.cleaner.io.max.bytes.per.second": "1000.0"})
    assert cleaner_settings(throttled).io_max_bytes_per_second == 1000.0
