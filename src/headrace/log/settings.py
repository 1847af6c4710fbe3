"""What a log is told about its topic and its broker: Kafka's names and defaults, as plain values."""

from dataclasses import dataclass
from typing import Literal

LONG_MAX = 2**63 - 1

TimestampType = Literal["CreateTime", "LogAppendTime"]
CompressionSetting = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]


@dataclass(slots=True, frozen=True)
class LogSettings:
    """A topic's configuration as far as its log cares; field names are Kafka's keys with underscores."""

    cleanup_delete: bool = True
    cleanup_compact: bool = False
    compression_type: CompressionSetting = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: TimestampType = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000


@dataclass(slots=True)
class ProducerStateSettings:
    """Broker-wide limits of what is remembered about producers. All logs of a node share one object, so that
    a change of it at run time holds for all."""

    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    transaction_verification_enabled: bool = True


@dataclass(slots=True, frozen=True)
class CleanerSettings:
    """Broker-wide bounds of compaction; field names are Kafka's `log.cleaner.*` keys."""

    threads: int = 1
    dedupe_buffer_bytes: int = 134_217_728
    dedupe_buffer_load_factor: float = 0.9
    io_buffer_bytes: int = 524_288
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000
