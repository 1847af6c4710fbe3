"""What is done about records that are gone: an error, or a warning where the query said so."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.client.errors import TopicRecreated
from headrace.spark.errors import DataLost
from headrace.types import ZERO_UUID

_LOG: Final = logging.getLogger("headrace.spark")


@dataclass(frozen=True, slots=True)
class Losses:
    """The option `failOnDataLoss`, as something to report to."""

    is_fatal: bool

    def report(self, what: str) -> None:
        """Raise DataLost, or warn."""
        if self.is_fatal:
            raise DataLost(what)
        _LOG.warning("%s. Records may have been lost; going on, since failOnDataLoss is false", what)

    def report_recreated(self, topic: str, expected: UUID, found: UUID) -> None:
        """Raise TopicRecreated, or warn."""
        problem = TopicRecreated(topic, expected, found)
        if self.is_fatal:
            raise problem
        _LOG.warning("%s. Going on with the new topic from its start, since failOnDataLoss is false", problem)


def was_recreated(topic: str, before: Mapping[str, UUID], now: Mapping[str, UUID]) -> bool:
    """Whether the topic of this name is another one than before. Where an id is not known, nobody can say."""
    old, new = before.get(topic, ZERO_UUID), now.get(topic, ZERO_UUID)
    return ZERO_UUID not in (old, new) and old != new
