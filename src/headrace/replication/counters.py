"""What is counted per topic, as plain numbers that metrics read."""


class TopicCounters:
    """Sums since the topic came to this node. A request counts once for each partition it names."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "fetch_requests",
        "fetch_requests_failed",
        "messages_in",
        "produce_requests",
        "produce_requests_failed",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.produce_requests_failed = 0
        self.fetch_requests = 0
        self.fetch_requests_failed = 0
