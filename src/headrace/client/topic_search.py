"""Finding topics by name, with the patience that a topic deserves that was created a moment ago."""

import asyncio
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from headrace.client.errors import BrokerRefused, UnknownTopics, Unreachable, is_retriable
from headrace.client.metadata import TopicMetadata
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode, HeadraceError

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster


class TopicSearch:
    """One search. Topics in use that are known and not out of date are found without asking anybody."""

    __slots__ = ("_cluster", "_create", "_patience")

    def __init__(self, cluster: "Cluster", create: bool | None, patience: Patience) -> None:
        self._cluster = cluster
        self._patience = patience
        self._create = cluster.config.allow_auto_create_topics if create is None else create

    async def find(self, names: Iterable[str] | None) -> Mapping[str, TopicMetadata]:
        """The topics; raises what `Cluster.topics` promises."""
        if names is None:
            return await self._all()
        wanted = list(dict.fromkeys(names))
        self._note_use(wanted)
        found = self._known(wanted)
        if len(found) == len(wanted):
            return found
        self._doubt(wanted)
        patience = self._patience
        wait = self._cluster.patience(self._cluster.config.topic_wait_ms)
        await self._finish_older_refresh()
        while True:
            self._note_use(wanted)
            await self._refresh()
            found = self._known(wanted)
            if len(found) == len(wanted):
                return found
            missing = [name for name in wanted if self._is_unknown(name)]
            if missing and (wait.is_over or patience.is_over):
                raise await self._unknown(missing, wait.waited_ms)
            if patience.is_over:
                raise self._refused([name for name in wanted if name not in found])
            await patience.pause()

    async def _all(self) -> Mapping[str, TopicMetadata]:
        while True:
            try:
                return (await self._cluster.describe_all()).topics
            except Unreachable:
                if self._patience.is_over:
                    raise
            await self._patience.pause()

    async def _finish_older_refresh(self) -> None:
        """A refresh that began before may not ask for these topics: it proves nothing about them."""
        if self._cluster.is_refreshing:
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            await self._cluster.refresh_within(self._patience)
        except Unreachable:
            if self._patience.is_over:
                raise

    def _doubt(self, names: Iterable[str]) -> None:
        """A topic is unknown once a broker was asked for it, not while none could be."""
        for name in names:
            if name not in self._cluster.metadata.topics:
                self._cluster.in_use.mark_stale(name)

    def _note_use(self, names: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for name in names:
            self._cluster.in_use.use(name, now, create=self._create)

    def _known(self, wanted: list[str]) -> dict[str, TopicMetadata]:
        """Those that are known and in order; BrokerRefused if one is refused for good."""
        known = self._cluster.metadata.topics
        found = {}
        for name in wanted:
            topic = known.get(name)
            if topic is None or self._cluster.in_use.is_stale(name):
                continue
            if not topic.error:
                found[name] = topic
            elif not is_retriable(topic.error):
                self._cluster.in_use.drop([name])
                raise self._refused([name])
        return found

    def _is_unknown(self, name: str) -> bool:
        if self._cluster.in_use.is_stale(name):
            return False
        topic = self._cluster.metadata.topics.get(name)
        return topic is None or topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _refused(self, names: list[str]) -> BrokerRefused:
        topic = self._cluster.metadata.topics.get(names[0])
        code = topic.error if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return BrokerRefused(code, None, f"topic {names[0]!r}")

    async def _unknown(self, missing: list[str], waited_ms: int) -> UnknownTopics:
        self._cluster.in_use.drop(missing)
        try:
            existing = list((await self._cluster.describe_all()).topics)
        except HeadraceError:
            # The names of others would only have made the message nicer.
            existing = []
        similar = {name: get_close_matches(name, existing, n=1, cutoff=0.7) for name in missing}
        return UnknownTopics(missing, waited_ms, {name: near[0] for name, near in similar.items() if near})
