"""Where metadata come from: known brokers first, the bootstrap servers when none of these answers.

Brokers are asked one after the other, the next one before the last has given up, so that one that is down
costs little.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from headrace.client.config import ClientConfig
from headrace.client.errors import ConnectionLost, RequestTimedOut, Unreachable, UnsupportedByBroker
from headrace.client.links import Links
from headrace.client.metadata import Broker, Metadata
from headrace.errors import ErrorCode
from headrace.net.dialing import first_to_succeed
from headrace.ports import Entropy
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

#: How long one broker has for itself before the next one is asked as well.
STAGGER_SECONDS: Final = 0.4
REBOOTSTRAP: Final = "rebootstrap"


class Answer(NamedTuple):
    """A broker's reply, and whether it came from a bootstrap server because no known broker answered."""

    reply: MetadataResponse
    is_from_bootstrap: bool


class MetadataSource:
    """Asks for metadata whoever can be asked."""

    __slots__ = ("_bootstraps", "_config", "_entropy", "_links")

    def __init__(self, config: ClientConfig, links: Links, entropy: Entropy) -> None:
        self._config = config
        self._links = links
        self._entropy = entropy
        self._bootstraps = 0

    async def ask(self, known: Metadata, names: Iterable[str] | None, *, create: bool) -> Answer:
        """Metadata of the named topics, None for all; Unreachable with what was tried if nobody answers."""
        request = metadata_request(names, create=create)
        tried: dict[str, str] = {}
        if known.brokers:
            reply = await self._ask_first(self._in_order(known.brokers.values()), request, tried, "")
            if reply is not None and reply.error_code != ErrorCode.REBOOTSTRAP_REQUIRED:
                return Answer(reply, is_from_bootstrap=False)
            if self._config.metadata_recovery_strategy != REBOOTSTRAP:
                raise Unreachable("none of the cluster's brokers can be reached", tried)
        # A lane of its own: who is answered closes it, and somebody else may still be waiting.
        self._bootstraps += 1
        lane = f"bootstrap-{self._bootstraps}"
        try:
            reply = await self._ask_first(self._bootstrap_brokers(), request, tried, lane)
        finally:
            await self._links.close_lane(lane)
        if reply is None:
            servers = ",".join(self._config.bootstrap_servers)
            raise Unreachable(f"no broker can be reached (bootstrap.servers={servers})", tried)
        return Answer(reply, is_from_bootstrap=True)

    async def _ask_first(
        self, brokers: Sequence[Broker], request: MetadataRequest, tried: dict[str, str], lane: str
    ) -> MetadataResponse | None:
        attempts = [partial(self._ask_one, broker, request, tried, lane) for broker in brokers]
        try:
            return await first_to_succeed(attempts, STAGGER_SECONDS)
        except (Unreachable, ConnectionLost, RequestTimedOut, UnsupportedByBroker):
            return None

    async def _ask_one(
        self, broker: Broker, request: MetadataRequest, tried: dict[str, str], lane: str
    ) -> MetadataResponse:
        try:
            link = self._links.to(broker, lane)
            timeout_ms = min(self._config.request_timeout_ms, self._config.default_api_timeout_ms)
            reply: MetadataResponse = await link.exchange(request, timeout_ms=timeout_ms)
        except Unreachable as error:
            tried.update(error.attempts)
            raise
        except (ConnectionLost, RequestTimedOut, UnsupportedByBroker) as error:
            tried[str(broker.address)] = str(error)
            raise
        if not reply.brokers:
            # A broker that is just starting knows of nobody yet, not even of itself.
            tried[str(broker.address)] = "it knows of no brokers yet"
            raise Unreachable(f"{broker} knows of no brokers yet", {})
        return reply

    def _in_order(self, brokers: Iterable[Broker]) -> list[Broker]:
        """Connected ones with the least to do first, those that failed lately last, the rest by chance."""

        def weight(broker: Broker) -> tuple[int, int, float]:
            link = self._links.known(broker)
            if link is None:
                return (1, 0, self._entropy.random())
            if link.is_live:
                return (0, link.requests_outstanding, self._entropy.random())
            return (1 + link.failures, 0, self._entropy.random())

        return sorted(brokers, key=weight)

    def _bootstrap_brokers(self) -> list[Broker]:
        addresses = self._config.bootstrap_addresses
        found = [Broker(-1 - index, each.host, each.port) for index, each in enumerate(addresses)]
        return sorted(found, key=lambda _: self._entropy.random())


def metadata_request(names: Iterable[str] | None, *, create: bool) -> MetadataRequest:
    """The request for some topics, or for all."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in sorted(names)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)
