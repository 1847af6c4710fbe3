"""Whether the consumer protocol is spoken: it takes a feature of the cluster and a setting of the node."""

from typing import Final

from headrace.api.services import Services
from headrace.errors import ErrorCode, KafkaError

_FEATURE: Final = "group.version"
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"


def check_consumer_protocol(services: Services) -> None:
    """Refuse requests of the consumer protocol where it is off."""
    if not services.image.feature_level(_FEATURE) or "consumer" not in services.config.items(_PROTOCOLS):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
