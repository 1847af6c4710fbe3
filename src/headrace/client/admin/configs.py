"""Configurations of topics, brokers, groups and the like: describing them, and changing single keys."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from headrace.client.admin.outcomes import Answer, Answers, Outcomes, request_ms, settle
from headrace.client.cluster import Cluster
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_RETRIED: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})


class ResourceKind(IntEnum):
    """What has configurations."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    BROKER_FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8

    @classmethod
    def _missing_(cls, value: object) -> "ConfigSource":
        return cls.UNKNOWN


class ConfigKind(IntEnum):
    """What a value is."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @classmethod
    def _missing_(cls, value: object) -> "ConfigKind":
        return cls.UNKNOWN


class Operation(IntEnum):
    """What to do with a key. APPEND and SUBTRACT are for lists, whose elements they add and take away."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """One thing that has configurations. The name of a broker is its id; it is empty for all brokers."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        kind = self.kind.name.lower().replace("_", " ")
        if self.kind == ResourceKind.BROKER and not self.name:
            return "all brokers"
        return f"{kind} {self.name!r}"

    @property
    def node_id(self) -> int | None:
        """The one broker that can tell, if any other can't."""
        is_of_one_broker = self.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and self.name
        return int(self.name) if is_of_one_broker else None


class Synonym(NamedTuple):
    """Another key that a value may come from, in the order in which they count."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key; `value` is None if it is secret, or not set."""

    name: str
    value: str | None
    source: ConfigSource
    kind: ConfigKind
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...] = ()
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it, on the resource or on the broker."""
        return self.source == ConfigSource.DEFAULT


class ConfigChange(NamedTuple):
    """What to do with one key."""

    name: str
    operation: Operation
    value: str | None = None


async def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    *,
    keys: Iterable[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
    timeout_ms: int | None = None,
) -> Outcomes[ConfigResource, Mapping[str, ConfigEntry]]:
    """All keys of resources, or those of `keys`."""
    patience = cluster.patience(timeout_ms)
    wanted_keys = None if keys is None else list(keys)

    async def ask_node(
        node_id: int | None, wanted: Sequence[ConfigResource]
    ) -> Mapping[ConfigResource, Answer[Mapping[str, ConfigEntry]]]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=wanted_keys
                )
                for kind, name in wanted
            ],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        reply = await _send(cluster, node_id, request, patience)
        return {
            ConfigResource(ResourceKind(each.resource_type), each.resource_name): Answer(
                each.error_code, each.error_message, {key.name: _entry(key) for key in each.configs}
            )
            for each in reply.results
        }

    async def ask(
        wanted: Mapping[ConfigResource, None],
    ) -> Answers[ConfigResource, Mapping[str, ConfigEntry]]:
        replies = await asyncio.gather(*(ask_node(node, each) for node, each in _by_node(wanted).items()))
        return Answers({resource: answer for reply in replies for resource, answer in reply.items()})

    wanted = dict.fromkeys(resources)
    return await settle(wanted, ask, patience=patience, retried=_RETRIED, where=str)


async def alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Sequence[ConfigChange]],
    *,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Outcomes[ConfigResource, None]:
    """Change single keys and leave all others as they are; with `validate_only` only find out if one could.

    All changes of a resource are made, or none of them."""
    patience = cluster.patience(timeout_ms)

    async def ask_node(
        node_id: int | None, wanted: Sequence[ConfigResource]
    ) -> Mapping[ConfigResource, Answer[None]]:
        request = IncrementalAlterConfigsRequest(
            resources=[_altered(resource, changes[resource]) for resource in wanted],
            validate_only=validate_only,
        )
        reply = await _send(cluster, node_id, request, patience)
        return {
            ConfigResource(ResourceKind(each.resource_type), each.resource_name): Answer(
                each.error_code, each.error_message, None
            )
            for each in reply.responses
        }

    async def ask(wanted: Mapping[ConfigResource, Sequence[ConfigChange]]) -> Answers[ConfigResource, None]:
        replies = await asyncio.gather(*(ask_node(node, each) for node, each in _by_node(wanted).items()))
        return Answers({resource: answer for reply in replies for resource, answer in reply.items()})

    return await settle(changes, ask, patience=patience, retried=_RETRIED, where=str)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """Resources by the broker that has to be asked; None for those that any broker knows."""
    found: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        found.setdefault(resource.node_id, []).append(resource)
    return found


async def _send(cluster: Cluster, node_id: int | None, request: Message, patience: Patience) -> Any:
    if node_id is None:
        return await cluster.send_any(request, patience=patience)
    return await cluster.send(node_id, request, timeout_ms=request_ms(cluster.config, patience))


def _entry(found: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=found.name,
        value=found.value,
        source=ConfigSource(found.config_source),
        kind=ConfigKind(found.config_type),
        is_read_only=found.read_only,
        is_sensitive=found.is_sensitive,
        synonyms=tuple(Synonym(each.name, each.value, ConfigSource(each.source)) for each in found.synonyms),
        documentation=found.documentation,
    )


def _altered(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=resource.kind,
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
            for change in changes
        ],
    )
