"""A topic of which this node has partitions."""

from headrace.replication.counters import TopicCounters
from headrace.replication.log_settings import TopicSettings
from headrace.replication.partition import Partition
from headrace.types import TopicId


class HostedTopic:
    """The hosted partitions of one topic by index. A topic that is made anew is another one."""

    __slots__ = ("counters", "name", "partitions", "settings", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, settings: TopicSettings) -> None:
        self.name = name
        self.topic_id = topic_id
        self.settings = settings
        self.partitions: dict[int, Partition] = {}
        self.counters = TopicCounters()
