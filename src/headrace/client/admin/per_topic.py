"""Partitions by their topics, as most requests have them."""

from collections.abc import Mapping
from typing import TypeVar

from headrace.types import TopicPartition

V = TypeVar("V")


def by_topic(values: Mapping[TopicPartition, V]) -> dict[str, dict[int, V]]:
    """The values of partitions by topic and number."""
    found: dict[str, dict[int, V]] = {}
    for (topic, partition), value in values.items():
        found.setdefault(topic, {})[partition] = value
    return found
