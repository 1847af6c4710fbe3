"""What handlers are given to work with, and the form they have.

A handler returns its reply at once wherever it can; one that has to wait returns an awaitable (a future,
where a task would be waste). Whoever runs handlers cancels that awaitable when the connection closes. None
means that no reply is sent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.api.auto_topics import AutoTopics
from headrace.api.context import RequestContext
from headrace.config.node import NodeConfig
from headrace.errors import KafkaError
from headrace.ports import Clock, Workers
from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.api.fetch_sessions import FetchSessions
    from headrace.groups.coordinator import GroupCoordinator
    from headrace.metadata.controller import Controller
    from headrace.metadata.image import MetadataImage
    from headrace.replication.producer_ids import ProducerIds
    from headrace.replication.replicas import Replicas
    from headrace.transactions.coordinator import TransactionCoordinator
    from headrace.transactions.local_markers import LocalMarkers
    from headrace.transactions.verification import TransactionVerifier


@dataclass(slots=True)
class Services:
    """The node as handlers see it. `config` is replaced as a whole when it changes at run time.

    `static_config` is what server.properties gave, if that is not `config` any more. Whoever has to act when
    `config` changes is in `on_config_change`, and is called with the old and the new one.

    `workers` do what would hold up the loop; without any, it is done here.

    `metrics` is what the dispatch counts with; handlers keep plain counters on the objects they count for."""

    config: NodeConfig
    clock: Clock
    image: "MetadataImage"
    controller: "Controller"
    replicas: "Replicas"
    fetch_sessions: "FetchSessions"
    producer_ids: "ProducerIds"
    metrics: object = None
    cluster_id: str = ""
    static_config: NodeConfig | None = None
    workers: Workers | None = None
    auto_topics: AutoTopics = field(default_factory=AutoTopics)
    on_config_change: list[Callable[[NodeConfig, NodeConfig], None]] = field(default_factory=list)
    groups: "GroupCoordinator | None" = None
    transactions: "TransactionCoordinator | None" = None
    verifier: "TransactionVerifier | None" = None
    markers: "LocalMarkers | None" = None


Reply: TypeAlias = Message | None
Handler: TypeAlias = Callable[[Services, RequestContext, Any], "Reply | Awaitable[Reply]"]
ErrorResponse: TypeAlias = Callable[[Any, int, KafkaError], Reply]


@dataclass(slots=True, frozen=True)
class Api:
    """One API as this node speaks it: a line of `table.py`.

    `error_response` makes the reply to a request (of a version) that was refused or failed as a whole. An API
    without one, and None for one that wants no reply, ends in a closed connection."""

    key: int
    name: str
    versions: tuple[int, int]
    request: type[Message]
    response: type[Message]
    handle: Handler
    error_response: ErrorResponse | None = None
