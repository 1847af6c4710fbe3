"""Which versions of each API a broker knows, asked once per connection before anything else.

A broker that does not know the newest way to ask answers in the oldest form and tells which way it knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace import __version__
from headrace.client.errors import ConnectionLost, UnsupportedByBroker, error_name
from headrace.errors import ErrorCode
from headrace.net.client_connection import ClientConnection
from headrace.protocol.apis import APIS, Api
from headrace.protocol.codec import decode
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.frame import decode_response_header, encode_request_parts
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME: Final = "headrace"
_ERROR_BYTES: Final = 2
_API: Final = APIS[ApiVersionsRequest.API_KEY]


@dataclass(slots=True, frozen=True)
class BrokerVersions:
    """What one broker offers: ranges of versions by API key, and the cluster's finalized features."""

    peer: str
    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int]

    def choose(self, request: Message, version_min: int | None, version_max: int | None) -> int:
        """The newest version of the request's API that both sides know, within the bounds."""
        api = APIS[request.API_KEY]
        offered = self.ranges.get(api.key)
        if offered is None:
            raise UnsupportedByBroker(self.peer, api.name, "it does not know this API")
        lowest = max(api.version_min, offered[0], version_min or 0)
        highest = min(api.stable_version_max, offered[1])
        if version_max is not None:
            highest = min(highest, version_max)
        if highest < lowest:
            raise UnsupportedByBroker(self.peer, api.name, _no_common(api, offered, version_min))
        return highest

    def supports(self, api_key: int, version: int = 0) -> bool:
        """Whether both sides know at least this version of an API."""
        offered = self.ranges.get(api_key)
        if offered is None:
            return False
        api = APIS[api_key]
        return max(version, api.version_min, offered[0]) <= min(api.stable_version_max, offered[1])


def _no_common(api: Api, offered: tuple[int, int], version_min: int | None) -> str:
    needed = f"{max(api.version_min, version_min or 0)} to {api.stable_version_max}"
    return f"it knows versions {offered[0]} to {offered[1]}, versions {needed} are needed here"


async def ask_versions(connection: ClientConnection, client_id: str, timeout_ms: int) -> BrokerVersions:
    """Introduce this client and learn what the broker can do."""
    reply = await _ask(connection, client_id, timeout_ms, _API.stable_version_max)
    if reply.error_code == ErrorCode.UNSUPPORTED_VERSION:
        known = {each.api_key: each.max_version for each in reply.api_keys}
        version = min(known.get(_API.key, 0), _API.stable_version_max)
        reply = await _ask(connection, client_id, timeout_ms, version)
    if reply.error_code:
        raise UnsupportedByBroker(
            connection.peer, _API.name, f"it refused with {error_name(reply.error_code)}"
        )
    connection.trust()
    return BrokerVersions(
        connection.peer,
        {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys},
        {each.name: each.max_version_level for each in reply.finalized_features},
    )


async def _ask(
    connection: ClientConnection, client_id: str, timeout_ms: int, version: int
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    frame = await connection.ask(
        lambda correlation_id: encode_request_parts(request, version, correlation_id, client_id),
        "ApiVersions",
        timeout_ms,
    )
    try:
        return _read(frame, version)
    except MalformedMessage as error:
        raise ConnectionLost(
            connection.peer, f"its answer to ApiVersions cannot be read ({error}); is it a Kafka broker?"
        ) from error


def _read(frame: memoryview, version: int) -> ApiVersionsResponse:
    _, position = decode_response_header(frame, _API, version)
    code = int.from_bytes(frame[position : position + _ERROR_BYTES], "big", signed=True)
    # A broker that does not know the version answers in version 0, whatever it was asked in.
    answered = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
    return decode(ApiVersionsResponse, answered, frame, position)
