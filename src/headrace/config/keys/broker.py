"""All keys of a node, from every subject, by name."""

from typing import Final

from headrace.config.definition import ConfigKey, Update
from headrace.config.keys import (
    groups,
    log,
    metrics,
    network,
    node,
    quorum,
    quotas,
    remote_storage,
    replication,
    security,
    share_groups,
    transactions,
)

_SUBJECTS = (
    node,
    network,
    log,
    replication,
    quorum,
    groups,
    transactions,
    share_groups,
    security,
    quotas,
    metrics,
    remote_storage,
)

BROKER_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for table in _SUBJECTS for key in table.KEYS}
"""What server.properties can set."""

RUN_TIME_ONLY_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in quotas.RUN_TIME_KEYS}
"""What a broker can be given at run time, but not in server.properties."""

DYNAMIC_KEYS: Final[dict[str, ConfigKey]] = RUN_TIME_ONLY_KEYS | {
    name: key for name, key in BROKER_KEYS.items() if key.update is not Update.READ_ONLY
}
"""What can change at run time."""
