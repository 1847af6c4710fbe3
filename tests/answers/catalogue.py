"""All scenarios by name, and the settings of the broker they are written for."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from tests.answers import (
    scenarios_cluster,
    scenarios_commits,
    scenarios_configs,
    scenarios_consumers,
    scenarios_fetch,
    scenarios_frames,
    scenarios_groups,
    scenarios_metadata,
    scenarios_offsets,
    scenarios_produce,
    scenarios_topics,
    scenarios_transactions,
)
from tests.answers.session import Session

FAMILIES: dict[str, ModuleType] = {
    "produce": scenarios_produce,
    "fetch": scenarios_fetch,
    "offsets": scenarios_offsets,
    "metadata": scenarios_metadata,
    "topics": scenarios_topics,
    "configs": scenarios_configs,
    "cluster": scenarios_cluster,
    "frames": scenarios_frames,
    "groups": scenarios_groups,
    "commits": scenarios_commits,
    "transactions": scenarios_transactions,
    "consumers": scenarios_consumers,
}
#: The APIs that the scenarios are about: those a node serves.
SERVED_KEYS = frozenset(
    (
        *scenarios_frames.COVERED_KEYS,
        *scenarios_groups.KEYS,
        *scenarios_transactions.KEYS,
        *scenarios_consumers.KEYS,
    )
)
#: What the broker is started with, beyond its addresses and directory.
PROPERTIES = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "num.partitions": "2",
    # The scenarios' records are years old: time must not delete them.
    "log.retention.hours": "1000000",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `alone` means that it sees or changes the whole cluster, so it needs one of its own."""

    family: str
    name: str
    run: Callable[[Session], None]
    alone: bool

    def __str__(self) -> str:
        return f"{self.family}.{self.name}"


def all_scenarios() -> list[Scenario]:
    """Every scenario of every family."""
    found = []
    for family, module in FAMILIES.items():
        for alone, functions in ((False, module.SCENARIOS), (True, getattr(module, "ALONE", ()))):
            found += [Scenario(family, each.__name__, each, alone) for each in functions]
    return found
