"""The one table: every API this node speaks, by kind of listener.

The dispatch, the ApiVersions reply and the coverage page of the documentation derive from it; nothing is
advertised that is not in it.
"""

from typing import Final

from headrace.api import (
    k18_api_versions,
)
from headrace.api.services import Api

BROKER_APIS: Final[tuple[Api, ...]] = (k18_api_versions.API,)
"""What clients and brokers may ask, in the order of keys."""

CONTROLLER_APIS: Final[tuple[Api, ...]] = (k18_api_versions.API,)
"""What may be asked on a controller's listener, in the order of keys."""


def apis_of(is_controller: bool) -> tuple[Api, ...]:
    """The APIs of a controller's or of a broker's listeners."""
    return CONTROLLER_APIS if is_controller else BROKER_APIS
