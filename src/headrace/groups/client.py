"""Who a request about a group comes from."""

from typing import NamedTuple


class GroupClient(NamedTuple):
    """A client as its members' records tell it; `version` is that of the API it uses."""

    version: int
    client_id: str | None
    host: str
