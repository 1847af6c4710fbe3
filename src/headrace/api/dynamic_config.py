"""The node's configuration at run time: what was set for it in the metadata, on top of server.properties."""

import logging
from collections.abc import Mapping
from typing import Final

from headrace.api.services import Services
from headrace.config.alteration import ResourceType
from headrace.config.describe import BrokerLayers
from headrace.config.dynamic import effective_node, unsupported_at_run_time
from headrace.config.node import NodeConfig
from headrace.metadata.delta import MetadataDelta

logger: Final = logging.getLogger("headrace.api")


def static_config(services: Services) -> NodeConfig:
    """What server.properties said."""
    return services.config if services.static_config is None else services.static_config


def broker_layers(services: Services) -> BrokerLayers:
    """The places that values come from, as the metadata has them now."""
    cluster, own = run_time_texts(services)
    return BrokerLayers(static_config(services), cluster, own)


def run_time_texts(services: Services) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What is set at run time for all brokers, and for this one."""
    return services.image.broker_config(None), services.image.broker_config(services.config.node_id)


def concerns_node(services: Services, delta: MetadataDelta) -> bool:
    """Whether a change of the metadata may change this node's configuration."""
    names = ("", str(services.config.node_id))
    return any(each.type == ResourceType.BROKER and each.name in names for each in delta.configs)


def refresh_config(services: Services) -> None:
    """Put what is set at run time into effect, and tell those who have to act on it."""
    static = static_config(services)
    for key in unsupported_at_run_time(static, *run_time_texts(services)):
        logger.error("the run-time configuration %s is passed over: %s", key.name, key.reason)
    old, new = services.config, effective_node(static, *run_time_texts(services))
    if new.texts == old.texts:
        return
    services.static_config = static
    services.config = new
    for react in services.on_config_change:
        try:
            react(old, new)
        except Exception:
            # What was set is in the metadata for good; one part that can't follow must not stop the others.
            logger.exception("a change of the configuration could not be followed by %s", react)
