"""What a topic's settings mean for batches that a leader is asked to append."""

from headrace.log.append_origin import AppendOrigin
from headrace.log.settings import LogSettings
from headrace.records.compression import Compression
from headrace.records.rules import CREATE_TIME, LOG_APPEND_TIME, Origin, ValidationRules
from headrace.types import TopicPartition

_CODECS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def validation_rules(
    partition: TopicPartition, settings: LogSettings, origin: AppendOrigin
) -> ValidationRules:
    """The validator's rules for one partition and one kind of writer."""
    codec = _CODECS.get(settings.compression_type)
    return ValidationRules(
        topic_partition=partition,
        compact=settings.cleanup_compact,
        timestamp_type=CREATE_TIME if settings.message_timestamp_type == "CreateTime" else LOG_APPEND_TIME,
        before_max_ms=settings.message_timestamp_before_max_ms,
        after_max_ms=settings.message_timestamp_after_max_ms,
        compression=codec,
        level=_level(settings, codec),
        origin=Origin.CLIENT if origin is AppendOrigin.CLIENT else Origin.COORDINATOR,
        max_message_bytes=settings.max_message_bytes,
        at_once=origin is AppendOrigin.CLIENT,
    )


def _level(settings: LogSettings, codec: Compression | None) -> int | None:
    if codec is Compression.GZIP:
        return settings.compression_gzip_level
    if codec is Compression.LZ4:
        return settings.compression_lz4_level
    if codec is Compression.ZSTD:
        return settings.compression_zstd_level
    return None
