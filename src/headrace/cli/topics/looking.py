"""`headrace topic list` and `describe`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.cli.client_options import OutputFormat
from headrace.cli.client_session import FAILED, complain
from headrace.cli.topics.printing import id_text, is_terminal, print_json, print_line, print_table
from headrace.client.admin.configs import ConfigEntry, ConfigResource, ResourceKind, describe_configs
from headrace.client.admin.topic_descriptions import PartitionDescription, TopicDescription, describe_topics
from headrace.client.admin.topics import TopicListing, list_topics
from headrace.client.cluster import Cluster
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.errors import HeadraceError
from headrace.types import TopicPartition


@dataclass(frozen=True, slots=True)
class ListTopics:
    """Prints the names of topics."""

    internal: bool
    output: OutputFormat

    async def __call__(self, cluster: Cluster) -> None:
        found = await list_topics(cluster, internal=self.internal)
        if self.output is OutputFormat.JSON:
            print_json([_listing(topic) for topic in found])
        elif is_terminal():
            rows = [(each.name, str(each.partitions), str(each.replication_factor)) for each in found]
            print_table(("topic", "#partitions", "#replicas"), rows)
        else:
            for topic in found:
                print_line(topic.name)


def _listing(topic: TopicListing) -> dict[str, object]:
    return {
        "name": topic.name,
        "id": id_text(topic.id),
        "internal": topic.is_internal,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }


class Described(NamedTuple):
    """A topic, its configurations that are not the default, and where its partitions begin and end."""

    topic: TopicDescription
    configs: Mapping[str, ConfigEntry]
    offsets: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class DescribeTopics:
    """Prints topics in full; one that can't be described does not keep the others from it."""

    names: Sequence[str]
    output: OutputFormat

    async def __call__(self, cluster: Cluster) -> int | None:
        outcomes = await describe_topics(cluster, self.names)
        topics = [outcomes.done[name] for name in dict.fromkeys(self.names) if name in outcomes.done]
        wanted = [ConfigResource(ResourceKind.TOPIC, topic.name) for topic in topics]
        configs = (await describe_configs(cluster, wanted)).all()
        described = [
            Described(topic, _set_only(configs[resource]), await _offsets(cluster, topic))
            for topic, resource in zip(topics, wanted, strict=True)
        ]
        self._print(described)
        for refusal in outcomes.refused.values():
            complain(str(refusal))
        return FAILED if outcomes.refused else None

    def _print(self, described: Sequence[Described]) -> None:
        if self.output is OutputFormat.JSON:
            print_json([_as_json(each) for each in described])
            return
        for each in described:
            if is_terminal():
                _print_table(each)
            else:
                _print_plain(each)


def _set_only(configs: Mapping[str, ConfigEntry]) -> dict[str, ConfigEntry]:
    return {name: entry for name, entry in sorted(configs.items()) if not entry.is_default}


async def _offsets(cluster: Cluster, topic: TopicDescription) -> dict[int, tuple[int, int]]:
    """The first and the next offset of partitions that have a leader who tells."""
    led = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader is not None]
    try:
        first = await list_offsets(cluster, dict.fromkeys(led, EARLIEST))
        last = await list_offsets(cluster, dict.fromkeys(led, LATEST))
    except HeadraceError as error:
        complain(f"offsets of {topic.name} can't be had: {error}")
        return {}
    return {each.partition: (first[each].offset, last[each].offset) for each in led}


def _as_json(described: Described) -> dict[str, Any]:
    topic = described.topic
    return {
        "name": topic.name,
        "id": id_text(topic.id),
        "internal": topic.is_internal,
        "replication_factor": topic.replication_factor,
        "configs": {
            name: {"value": entry.value, "source": entry.source.name.lower()}
            for name, entry in described.configs.items()
        },
        "partitions": [_partition_json(each, described.offsets) for each in topic.partitions],
    }


def _partition_json(each: PartitionDescription, offsets: Mapping[int, tuple[int, int]]) -> dict[str, object]:
    first, last = offsets.get(each.partition, (None, None))
    return {
        "partition": each.partition,
        "leader": each.leader,
        "leader_epoch": each.leader_epoch,
        "replicas": each.replicas,
        "isr": each.in_sync,
        "offline": each.offline,
        "elr": each.eligible,
        "last_known_elr": each.eligible_last_known,
        "offset_first": first,
        "offset_next": last,
    }


def _print_plain(described: Described) -> None:
    """The lines of Kafka's own script, and the offsets behind them."""
    topic = described.topic
    head = {
        "Topic": topic.name,
        "TopicId": id_text(topic.id),
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": str(topic.replication_factor),
        "Configs": ",".join(f"{name}={entry.value}" for name, entry in described.configs.items()),
    }
    print_line(_fields(head))
    for each in topic.partitions:
        first, last = described.offsets.get(each.partition, ("none", "none"))
        line = {
            "Topic": topic.name,
            "Partition": str(each.partition),
            "Leader": "none" if each.leader is None else str(each.leader),
            "Replicas": _nodes(each.replicas),
            "Isr": _nodes(each.in_sync),
            "Elr": "N/A" if each.eligible is None else _nodes(each.eligible),
            "LastKnownElr": "N/A" if each.eligible_last_known is None else _nodes(each.eligible_last_known),
            "OffsetFirst": str(first),
            "OffsetNext": str(last),
        }
        print_line("\t" + _fields(line))


def _print_table(described: Described) -> None:
    topic = described.topic
    print_line(f"{topic.name}  id {id_text(topic.id)}")
    for name, entry in described.configs.items():
        print_line(f"  {name} = {entry.value}  ({entry.source.name.lower().replace('_', ' ')})")
    rows = []
    for each in topic.partitions:
        first, last = described.offsets.get(each.partition, ("?", "?"))
        leader = "none" if each.leader is None else str(each.leader)
        rows.append(
            (str(each.partition), leader, _nodes(each.replicas), _nodes(each.in_sync), str(first), str(last))
        )
    print_table(("#partition", "#leader", "replicas", "in sync", "#first offset", "#next offset"), rows)


def _fields(values: Mapping[str, str]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in values.items())


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))
