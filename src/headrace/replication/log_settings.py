"""From a topic's effective configuration to what its log and its leader are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from headrace.config.node import NodeConfig
from headrace.config.values import ConfigValue
from headrace.log.settings import (
    CleanerSettings,
    CompressionSetting,
    LogSettings,
    ProducerStateSettings,
    TimestampType,
)

_UNLIMITED_IO = 1.7976931348623157e308


@dataclass(slots=True, frozen=True)
class TopicSettings:
    """What a topic's configuration means to this node."""

    log: LogSettings
    min_insync_replicas: int = 1


def topic_settings(values: Mapping[str, ConfigValue]) -> TopicSettings:
    """From the values of all topic keys, as `config.topic.effective_topic_config` gives them."""
    return TopicSettings(log_settings(values), _integer(values, "min.insync.replicas"))


def log_settings(values: Mapping[str, ConfigValue]) -> LogSettings:
    """The part of a topic's configuration that its log heeds."""
    policies = values["cleanup.policy"]
    if not isinstance(policies, tuple):
        raise TypeError(f"cleanup.policy is {type(policies).__name__}, not a list")
    segment_bytes = values["internal.segment.bytes"]
    return LogSettings(
        cleanup_delete="delete" in policies,
        cleanup_compact="compact" in policies,
        compression_type=cast(CompressionSetting, values["compression.type"]),
        compression_gzip_level=_integer(values, "compression.gzip.level"),
        compression_lz4_level=_integer(values, "compression.lz4.level"),
        compression_zstd_level=_integer(values, "compression.zstd.level"),
        delete_retention_ms=_integer(values, "delete.retention.ms"),
        file_delete_delay_ms=_integer(values, "file.delete.delay.ms"),
        flush_messages=_integer(values, "flush.messages"),
        flush_ms=_integer(values, "flush.ms"),
        index_interval_bytes=_integer(values, "index.interval.bytes"),
        max_compaction_lag_ms=_integer(values, "max.compaction.lag.ms"),
        max_message_bytes=_integer(values, "max.message.bytes"),
        message_timestamp_after_max_ms=_integer(values, "message.timestamp.after.max.ms"),
        message_timestamp_before_max_ms=_integer(values, "message.timestamp.before.max.ms"),
        message_timestamp_type=cast(TimestampType, values["message.timestamp.type"]),
        min_cleanable_dirty_ratio=_number(values, "min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=_integer(values, "min.compaction.lag.ms"),
        preallocate=values["preallocate"] is True,
        retention_bytes=_integer(values, "retention.bytes"),
        retention_ms=_integer(values, "retention.ms"),
        segment_bytes=segment_bytes if isinstance(segment_bytes, int) else _integer(values, "segment.bytes"),
        segment_index_bytes=_integer(values, "segment.index.bytes"),
        segment_jitter_ms=_integer(values, "segment.jitter.ms"),
        segment_ms=_integer(values, "segment.ms"),
    )


def producer_state_settings(config: NodeConfig) -> ProducerStateSettings:
    """What a node's configuration says about remembered producers."""
    return ProducerStateSettings(
        producer_id_expiration_ms=config.integer("producer.id.expiration.ms"),
        producer_id_expiration_check_interval_ms=config.integer("producer.id.expiration.check.interval.ms"),
        transaction_verification_enabled=config.flag("transaction.partition.verification.enable"),
    )


def cleaner_settings(config: NodeConfig) -> CleanerSettings:
    """What a node's configuration says about compaction."""
    rate = config.number("log.cleaner.io.max.bytes.per.second")
    return CleanerSettings(
        threads=config.integer("log.cleaner.threads"),
        dedupe_buffer_bytes=config.integer("log.cleaner.dedupe.buffer.size"),
        dedupe_buffer_load_factor=config.number("log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=config.integer("log.cleaner.io.buffer.size"),
        io_max_bytes_per_second=float("inf") if rate >= _UNLIMITED_IO else rate,
        backoff_ms=config.integer("log.cleaner.backoff.ms"),
    )


def _integer(values: Mapping[str, ConfigValue], key: str) -> int:
    value = values[key]
    if not isinstance(value, int):
        raise TypeError(f"{key} is {type(value).__name__}, not int")
    return value


def _number(values: Mapping[str, ConfigValue], key: str) -> float:
    value = values[key]
    if not isinstance(value, float):
        raise TypeError(f"{key} is {type(value).__name__}, not float")
    return value
