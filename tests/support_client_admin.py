"""A cluster that answers from a script: what administrative calls send, and what they make of replies."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.errors import UnknownTopics
from headrace.client.metadata import Broker, Leader, Metadata, PartitionMetadata, TopicMetadata
from headrace.client.retrying import Patience
from headrace.protocol.message import Message
from headrace.testing.entropy import SeededEntropy

Reply = Message | Exception | Callable[[Any], Message]


class ScriptedCluster:
    """Takes replies in turn, whoever is asked, and remembers who was asked what."""

    def __init__(
        self,
        *replies: Reply,
        brokers: Iterable[int] = (1,),
        leaders: dict[str, dict[int, int]] | None = None,
        default_api_timeout_ms: int = 20_000,
    ) -> None:
        self.config = ClientConfig(
            retry_backoff_ms=1, retry_backoff_max_ms=2, default_api_timeout_ms=default_api_timeout_ms
        )
        self.replies = deque(replies)
        self.sent: list[tuple[object, Any]] = []
        self.options: list[dict[str, Any]] = []
        #: How long each request may take, with all attempts at it.
        self.budgets_ms: list[int] = []
        self.marked_stale: list[str] = []
        self._brokers = tuple(brokers)
        self._leaders = leaders or {}

    @property
    def cluster(self) -> Cluster:
        return cast(Cluster, self)

    @property
    def requests(self) -> list[Any]:
        return [request for _, request in self.sent]

    def _answer(self, whom: object, request: Message, options: dict[str, Any]) -> Message:
        self.sent.append((whom, request))
        self.options.append({name: option for name, option in options.items() if name != "patience"})
        self.budgets_ms.append(self._budget_ms(options))
        reply = self.replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Message) else reply(request)

    def _budget_ms(self, options: dict[str, Any]) -> int:
        patience: Patience | None = options.get("patience")
        if patience is not None:
            return patience.budget_ms
        return int(options.get("timeout_ms") or self.config.default_api_timeout_ms)

    async def send(self, node_id: int, request: Message, **options: Any) -> Message:
        return self._answer(node_id, request, options)

    async def send_any(self, request: Message, **options: Any) -> Message:
        return self._answer("any", request, options)

    async def send_controller(self, request: Message, **options: Any) -> Message:
        return self._answer("controller", request, options)

    async def send_coordinator(self, key: str, request: Message, **options: Any) -> Message:
        return self._answer(f"coordinator of {key}", request, options)

    def patience(self, budget_ms: int | None = None) -> Patience:
        budget = self.config.default_api_timeout_ms if budget_ms is None else budget_ms
        return Patience(self.config, SeededEntropy(1), budget)

    async def refresh(self) -> Metadata:
        return Metadata(brokers={node: Broker(node, "host", 9092) for node in self._brokers})

    async def topics(self, names: Iterable[str], *, patience: Patience) -> dict[str, TopicMetadata]:
        wanted = list(names)
        missing = [name for name in wanted if name not in self._leaders]
        if missing:
            raise UnknownTopics(missing, 0, {})
        return {
            name: TopicMetadata(
                name,
                partitions={
                    each: PartitionMetadata(each, node) for each, node in self._leaders[name].items()
                },
            )
            for name in wanted
        }

    async def leader(self, topic: str, partition: int, *, patience: Patience) -> Leader:
        return Leader(self._leaders[topic][partition], 0)

    def stale(self, topic: str) -> None:
        self.marked_stale.append(topic)
