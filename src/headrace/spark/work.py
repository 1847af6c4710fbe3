"""Pieces of work: what the driver plans and a task reads. Nothing that reads is imported here."""

from dataclasses import dataclass
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from headrace.spark.driver import Plan


@dataclass(frozen=True)
class Work(InputPartition):
    """What one task reads; it travels from the driver to a worker."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID | None


def works_of(plan: Plan) -> list[InputPartition]:
    """One piece of work for each range."""
    found: list[InputPartition] = []
    for piece in plan.ranges:
        topic, partition = piece.partition
        found.append(Work(topic, partition, piece.start, piece.end, plan.ids.get(topic)))
    return found
