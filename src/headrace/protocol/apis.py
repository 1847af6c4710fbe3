"""Every API: its versions, its message classes and the headers that go before them.

The table is plain data. A message module is imported when its classes are asked for.
"""

from importlib import import_module
from typing import cast

from headrace.protocol.api_table import API_ROWS, ApiKey
from headrace.protocol.message import Message


class Api:
    """One API. Withdrawn ones have a key and a name, but no versions.

    A plain class: a named tuple or a dataclass would be compiled at every start.
    """

    __slots__ = (
        "key",
        "latest_unstable",
        "listeners",
        "name",
        "request_flexible_since",
        "response_flexible_since",
        "version_max",
        "version_min",
    )

    def __init__(
        self,
        key: int,
        name: str,
        version_min: int,
        version_max: int,
        request_flexible_since: int,
        response_flexible_since: int,
        latest_unstable: bool,
        listeners: tuple[str, ...],
    ) -> None:
        self.key = key
        self.name = name
        self.version_min = version_min
        self.version_max = version_max
        self.request_flexible_since = request_flexible_since
        self.response_flexible_since = response_flexible_since
        self.latest_unstable = latest_unstable
        self.listeners = listeners

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name}, {self.version_min}-{self.version_max})"

    @property
    def is_withdrawn(self) -> bool:
        """Whether no version of the API is left."""
        return self.version_max < self.version_min

    @property
    def stable_version_max(self) -> int:
        """The highest version that may be offered to clients."""
        return self.version_max - 1 if self.latest_unstable else self.version_max

    @property
    def module(self) -> str:
        """The module of `headrace.protocol.messages` that holds the API's classes."""
        return ApiKey(self.key).name.lower()

    def supports(self, version: int) -> bool:
        """Whether there is a schema for this version."""
        return self.version_min <= version <= self.version_max

    def request_class(self) -> type[Message]:
        """The class of the API's requests."""
        return self._message_class("Request")

    def response_class(self) -> type[Message]:
        """The class of the API's responses."""
        return self._message_class("Response")

    def _message_class(self, suffix: str) -> type[Message]:
        module = import_module(f"headrace.protocol.messages.{self.module}")
        return cast(type[Message], getattr(module, self.name + suffix))

    def request_header_version(self, version: int) -> int:
        """The version of the header before a request; it holds for versions without a schema, too."""
        return 2 if 0 <= self.request_flexible_since <= version else 1

    def response_header_version(self, version: int) -> int:
        """The version of the header before a response.

        A client that asks for its peer's versions cannot know yet how the peer answers, so that answer always
        has the oldest header.
        """
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if 0 <= self.response_flexible_since <= version else 0


APIS: dict[int, Api] = {row[0]: Api(*row) for row in API_ROWS}
