"""What consumers of a classic group subscribe to, read from what they told when they joined."""

import logging
from typing import TYPE_CHECKING, Final

from headrace.protocol.codec import decode_prefix
from headrace.protocol.disk_records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from headrace.groups.classic_group import ClassicGroup

_VERSION_BYTES: Final = 2
#: Every later version begins as this one does.
_BASE_VERSION: Final = 0

logger: Final = logging.getLogger("headrace.groups")


def subscribed_topics(group: "ClassicGroup") -> frozenset[str] | None:
    """The topics of all members; None if the members speak another protocol, or what they say is unclear."""
    if not group.uses_consumer_protocol:
        return None
    if not group.members:
        return frozenset()
    if group.protocol is None:
        return None
    topics: set[str] = set()
    try:
        for member in group.members.values():
            topics.update(topics_of(member.metadata(group.protocol)))
    except ProtocolError as error:
        logger.warning(
            "a subscription in group %s can't be read, so its topics are not known: %s", group.group_id, error
        )
        return None
    return frozenset(topics)


def topics_of(subscription: bytes) -> list[str]:
    """The topics in one member's subscription."""
    message, _ = decode_prefix(ConsumerProtocolSubscription, _BASE_VERSION, subscription, _VERSION_BYTES)
    return message.topics
