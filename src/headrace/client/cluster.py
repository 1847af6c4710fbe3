"""A cluster as a client sees it: whom to ask, who leads what, and requests with their replies.

One `Cluster` serves any number of readers, writers and administrative calls. It belongs to one event loop and
keeps a connection to each broker that is used. It holds what is known of the cluster (`metadata`) up to date:
by age, and when something turns out to be no longer so.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol

from headrace.client.config import ClientConfig
from headrace.client.coordinators import Coordinators
from headrace.client.error_codes import has_code
from headrace.client.errors import (
    ClientClosed,
    ConnectionLost,
    NoLeader,
    RequestTimedOut,
    Unreachable,
)
from headrace.client.link import Link
from headrace.client.links import DEFAULT_LANE, Lane, Links
from headrace.client.metadata import Broker, Leader, Metadata, TopicMetadata
from headrace.client.metadata_source import MetadataSource
from headrace.client.retrying import Patience
from headrace.client.sharing import result_of
from headrace.client.topic_search import TopicSearch
from headrace.client.topics_in_use import TopicsInUse
from headrace.client.versions import BrokerVersions
from headrace.errors import ErrorCode, HeadraceError
from headrace.ports import Entropy
from headrace.protocol.message import Message
from headrace.system.entropy import SystemEntropy

#: An attempt that begins when time is nearly up could not come to anything without this.
_LAST_ATTEMPT_MS: Final = 500

logger = logging.getLogger("headrace.client")


class Endpoint(Protocol):
    """Where a broker listens, as replies tell it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Cluster:
    """The connections of this process to one cluster. Use it as an async context manager."""

    def __init__(self, config: ClientConfig, *, entropy: Entropy | None = None) -> None:
        self.config = config
        self.entropy: Entropy = entropy or SystemEntropy()
        self.metadata = Metadata()
        self.in_use = TopicsInUse(config.metadata_max_idle_ms)
        self._links: Links | None = None
        self._source: MetadataSource | None = None
        self._coordinators = Coordinators(self)
        self._refreshing: asyncio.Task[Metadata] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._lanes = 0

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, once connected."""
        return self.metadata.cluster_id

    async def __aenter__(self) -> "Cluster":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Find the cluster; Unreachable if no bootstrap server answers within `default.api.timeout.ms`."""
        if self._links is not None:
            raise ClientClosed("a cluster is started once: make another `Cluster`")
        self._links = Links(self.config, self.entropy)
        self._source = MetadataSource(self.config, self._links, self.entropy)
        try:
            await self._bootstrap()
        except BaseException:
            await self.close()
            raise
        self._keeper = asyncio.create_task(self._keep_fresh(), name="headrace metadata")

    async def close(self) -> None:
        """Close all connections. Requests under way end with ConnectionLost; nothing is left running."""
        tasks = [task for task in (self._keeper, self._refreshing) if task is not None]
        self._keeper = None
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            # Whoever is cancelled while closing leaves no connection behind, either.
            if self._links is not None:
                await self._links.close()

    # Requests

    async def send(
        self,
        node_id: int,
        request: Message,
        *,
        timeout_ms: int | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
        lane: Lane = DEFAULT_LANE,
        expects_reply: bool = True,
    ) -> Any:
        """Send a request to a broker and return its reply, in the newest version that both sides know.

        Raises Unreachable, ConnectionLost, RequestTimedOut or UnsupportedByBroker; what the reply says is the
        caller's to judge. Cancelling is safe. A request without a reply (`acks=0`) returns None once it is on
        its way.
        """
        link = await self._link(node_id, lane)
        try:
            return await link.exchange(
                request,
                timeout_ms=timeout_ms or self.config.request_timeout_ms,
                version_min=min_version,
                version_max=max_version,
                expects_reply=expects_reply,
            )
        except (Unreachable, ConnectionLost, RequestTimedOut):
            self._distrust(node_id)
            raise

    async def send_any(self, request: Message, *, patience: Patience | None = None, **options: Any) -> Any:
        """Send a request to any broker that answers; options are those of `send`.

        Unreachable once `patience` is over, which is `default.api.timeout.ms` unless told otherwise.
        """
        patience = patience or self.patience()
        while True:
            tried: dict[str, str] = {}
            for node_id in self._by_ease():
                try:
                    return await self.send(node_id, request, **self._bounded(options, patience))
                except (Unreachable, ConnectionLost, RequestTimedOut) as error:
                    tried[f"broker {node_id}"] = str(error)
            if patience.is_over:
                raise Unreachable("no broker of the cluster can be reached", tried)
            await patience.pause()
            await self._refresh_or_wait(patience)

    async def send_controller(
        self, request: Message, *, patience: Patience | None = None, **options: Any
    ) -> Any:
        """Send a request to the controller, or to the broker that passes it on; options as in `send_any`."""
        patience = patience or self.patience()
        while True:
            controller = self.metadata.controller_id
            if controller not in self.metadata.brokers:
                reply = await self.send_any(request, patience=patience, **options)
            else:
                try:
                    reply = await self.send(controller, request, **self._bounded(options, patience))
                except (Unreachable, ConnectionLost):
                    if patience.is_over:
                        raise
                    reply = None
            if reply is not None and (not has_code(reply, ErrorCode.NOT_CONTROLLER) or patience.is_over):
                return reply
            await patience.pause()
            await self._refresh_or_wait(patience)

    async def send_coordinator(
        self,
        key: str,
        request: Message,
        *,
        kind: int = 0,
        patience: Patience | None = None,
        **options: Any,
    ) -> Any:
        """Send a request to the coordinator of a group (kind 0), a transactional id (1) or a share key (2).

        It is looked up, and again when it has moved; while it is loading, it is waited for. Options are those
        of `send_any`.
        """
        return await self._coordinators.send(key, request, kind, patience or self.patience(), options)

    async def versions(self, node_id: int, lane: Lane = DEFAULT_LANE) -> BrokerVersions:
        """Which versions of each API a broker knows."""
        return await (await self._link(node_id, lane)).versions()

    def new_lane(self, purpose: str) -> Lane:
        """A name for connections of one's own, for requests that a broker may let wait."""
        self._lanes += 1
        return f"{purpose}-{self._lanes}"

    async def close_lane(self, lane: Lane) -> None:
        """Close the connections of a lane."""
        if self._links is not None:
            await self._links.close_lane(lane)

    # Metadata

    async def topics(
        self,
        names: Iterable[str] | None,
        *,
        create: bool | None = None,
        patience: Patience | None = None,
    ) -> Mapping[str, TopicMetadata]:
        """The topics of these names, or all that there are.

        UnknownTopics if one is still missing after `topic.wait.ms`, BrokerRefused if one may not be seen,
        Unreachable if nobody could be asked while there was `patience`. Named topics are kept up to date from
        then on. With `create` (or `allow.auto.create.topics`) the broker may create missing ones, if it is
        configured to.
        """
        return await TopicSearch(self, create, patience or self.patience()).find(names)

    async def leader(self, topic: str, partition: int, *, patience: Patience | None = None) -> Leader:
        """Who leads a partition. Waits while nobody does; NoLeader or UnknownTopics after a bounded time."""
        found = self._leader_now(topic, partition)
        if found is not None:
            return found
        patience = patience or self.patience()
        while True:
            reason = "it is being elected"
            topics = await self.topics([topic], patience=patience)
            if partition not in topics[topic].partitions:
                reason = f"the topic has {len(topics[topic].partitions)} partitions"
            elif (found := self.metadata.leader_of(topic, partition)) is not None:
                return found
            if patience.is_over:
                raise NoLeader(topic, partition, patience.waited_ms, reason)
            self.in_use.mark_stale(topic)
            await patience.pause()

    def learn_leader(
        self, topic: str, partition: int, leader: int, epoch: int, endpoints: Iterable[Endpoint] = ()
    ) -> None:
        """Take note of a leader that a broker told of when it refused (KIP-951)."""
        brokers = [Broker(each.node_id, each.host, each.port, each.rack) for each in endpoints]
        self.metadata = self.metadata.with_leader(topic, partition, Leader(leader, epoch), brokers)

    def stale(self, topic: str) -> None:
        """What is known of a topic turned out to be wrong; the next use of it refreshes."""
        self.in_use.mark_stale(topic)

    @property
    def is_refreshing(self) -> bool:
        """Whether a refresh is under way."""
        return self._refreshing is not None

    async def refresh(self) -> Metadata:
        """Ask for the metadata of the topics in use now. Who asks meanwhile gets the same answer.

        Unreachable if no broker answers; neither known ones nor the bootstrap servers.
        """
        refreshing = self._refreshing
        if refreshing is None:
            self._require_open()
            refreshing = self._refreshing = asyncio.create_task(self._refresh(), name="headrace refresh")
            refreshing.add_done_callback(self._on_refreshed)
        return await result_of(refreshing, lambda: ClientClosed("the cluster was closed"))

    async def refresh_within(self, patience: Patience) -> Metadata:
        """Refresh, but wait no longer than there is patience, and a moment for the last attempt."""
        try:
            async with asyncio.timeout((patience.left_ms + _LAST_ATTEMPT_MS) / 1000):
                return await self.refresh()
        except TimeoutError:
            waited_ms = patience.waited_ms
            raise Unreachable(f"no broker has told of the cluster within {waited_ms} ms") from None

    async def describe_all(self) -> Metadata:
        """What there is in the whole cluster, without keeping it up to date."""
        answer = await self._require_open().ask(self.metadata, None, create=False)
        return Metadata().updated(answer.reply, None)

    def patience(self, budget_ms: int | None = None) -> Patience:
        """Time for an operation with several attempts; `default.api.timeout.ms` unless told otherwise."""
        budget = self.config.default_api_timeout_ms if budget_ms is None else budget_ms
        return Patience(self.config, self.entropy, budget)

    # Parts

    def _require_open(self) -> MetadataSource:
        if self._source is None:
            raise ClientClosed("the cluster was not started: use `async with Cluster(config)`")
        return self._source

    async def _link(self, node_id: int, lane: Lane) -> Link:
        self._require_open()
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            broker = (await self.refresh()).brokers.get(node_id)
        if broker is None or self._links is None:
            raise Unreachable(f"the cluster has no broker {node_id}")
        return self._links.to(broker, lane)

    def _bounded(self, options: dict[str, Any], patience: Patience) -> dict[str, Any]:
        """Options of a request that takes no longer than the operation that it is part of."""
        timeout_ms = options.get("timeout_ms") or self.config.request_timeout_ms
        return {**options, "timeout_ms": min(timeout_ms, patience.left_ms)}

    def _distrust(self, node_id: int) -> None:
        """What a broker leads may have another leader by now, if something is wrong with the broker."""
        for name, topic in self.metadata.topics.items():
            if any(each.leader == node_id for each in topic.partitions.values()):
                self.in_use.mark_stale(name)

    def _leader_now(self, topic: str, partition: int) -> Leader | None:
        self.in_use.use(topic, asyncio.get_running_loop().time())
        if self.in_use.is_stale(topic):
            return None
        return self.metadata.leader_of(topic, partition)

    def _by_ease(self) -> list[int]:
        """The known brokers, connected ones with the least to do first."""
        links = self._links

        def weight(broker: Broker) -> tuple[int, int, float]:
            link = links.known(broker) if links is not None else None
            if link is not None and link.is_live:
                return (0, link.requests_outstanding, self.entropy.random())
            return (1 + (link.failures if link is not None else 0), 0, self.entropy.random())

        return [broker.node_id for broker in sorted(self.metadata.brokers.values(), key=weight)]

    async def _bootstrap(self) -> None:
        patience = self.patience()
        failure: Unreachable | None = None
        while True:
            try:
                await self.refresh_within(patience)
                return
            except Unreachable as error:
                # An attempt that was cut short has nothing to tell of the servers.
                failure = error if error.attempts or failure is None else failure
                if patience.is_over:
                    raise failure from None
                logger.info("%s; trying again", error)
            await patience.pause()

    async def _refresh(self) -> Metadata:
        source = self._require_open()
        names = self.in_use.names()
        create = self.in_use.begin_refresh()
        try:
            answer = await source.ask(self.metadata, names, create=create)
        except BaseException:
            self.in_use.refresh_failed()
            raise
        known = Metadata() if answer.is_from_bootstrap else self.metadata
        self._adopt(known.updated(answer.reply, names))
        return self.metadata

    def _adopt(self, fresh: Metadata) -> None:
        before = self.metadata
        if before.cluster_id not in (None, fresh.cluster_id):
            logger.warning("the cluster's id changed from %s to %s", before.cluster_id, fresh.cluster_id)
        self.metadata = fresh.without(self.in_use.forget_unused(asyncio.get_running_loop().time()))
        if self._links is not None:
            for node_id in before.brokers.keys() - fresh.brokers.keys():
                self._links.close_node(node_id)

    def _on_refreshed(self, refreshing: "asyncio.Task[Metadata]") -> None:
        self._refreshing = None
        if not refreshing.cancelled():
            # Nobody may be waiting any more; the failure is then of no interest.
            refreshing.exception()

    async def _refresh_or_wait(self, patience: Patience) -> None:
        """Refresh if possible; a failure is the next attempt's to report."""
        try:
            await self.refresh_within(patience)
        except Unreachable:
            if patience.is_over:
                raise

    async def _keep_fresh(self) -> None:
        """Refresh by age, so that new partitions are seen by clients that have no errors."""
        # An age of 0 asks for the newest there is, not for brokers that do nothing but answer.
        age_ms = max(self.config.metadata_max_age_ms, self.config.retry_backoff_ms, 1)
        while True:
            await asyncio.sleep(age_ms / 1000)
            try:
                await self.refresh()
            except HeadraceError as error:
                logger.warning("metadata could not be refreshed: %s", error)
