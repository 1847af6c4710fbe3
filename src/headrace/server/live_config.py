"""The configuration as it is now: server.properties, and what was set for the cluster and this broker since."""

import logging
from collections.abc import Callable
from typing import Final

from headrace.config.dynamic import effective_node
from headrace.config.node import NodeConfig
from headrace.config.refusals import InvalidConfig
from headrace.metadata.image import MetadataImage

Change = Callable[[NodeConfig, NodeConfig], None]

logger: Final = logging.getLogger("headrace.server")


class LiveConfig:
    """`static` is what the node was started with, `current` what holds; whoever depends on it is called."""

    __slots__ = ("_on_change", "current", "static")

    def __init__(self, static: NodeConfig) -> None:
        self.static = static
        self.current = static
        self._on_change: list[Change] = []

    def when_changed(self, call: Change) -> None:
        """Be called with the old and the new configuration, in the order of asking."""
        self._on_change.append(call)

    def refresh(self, image: MetadataImage) -> None:
        """Take over what the metadata says now."""
        cluster, broker = image.broker_config(None), image.broker_config(self.static.node_id)
        try:
            changed = effective_node(self.static, cluster, broker)
        except InvalidConfig as error:
            logger.error("the configuration set at run time can't be used and is passed over: %s", error)
            return
        old, self.current = self.current, changed
        if changed.texts == old.texts:
            return
        before, after = old.loggable(), changed.loggable()
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                logger.info("configuration %s is now %s", name, after.get(name, "back to its default"))
        for call in self._on_change:
            call(old, changed)
