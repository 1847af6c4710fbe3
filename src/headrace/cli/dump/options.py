"""What the user asked a dump for. Plain data, filled by the command line."""

from dataclasses import dataclass
from enum import StrEnum

INT_MAX = 2**31 - 1
MESSAGE_SIZE_MAX_DEFAULT = 5 * 1024 * 1024


class OutputFormat(StrEnum):
    """How a dump is printed."""

    TEXT = "text"
    JSON = "json"


class Contents(StrEnum):
    """What the records of a log are, which decides how keys and values are shown."""

    TEXT = "text"
    OFFSETS = "offsets"
    TRANSACTIONS = "transactions"
    CLUSTER_METADATA = "cluster-metadata"
    SHARE_GROUPS = "share-groups"
    REMOTE_LOG_METADATA = "remote-log-metadata"


class Scalar(StrEnum):
    """How the bytes of one plain key or value are read; Kafka's tool names these by Java classes."""

    STRING = "string"
    INTEGER = "integer"
    LONG = "long"


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The switches of one dump."""

    show_records: bool = False
    deep: bool = False
    skip_record_metadata: bool = False
    contents: Contents = Contents.TEXT
    key_scalar: Scalar = Scalar.STRING
    value_scalar: Scalar = Scalar.STRING
    verify_index_only: bool = False
    index_sanity_only: bool = False
    message_size_max: int = MESSAGE_SIZE_MAX_DEFAULT
    bytes_max: int = INT_MAX

    @property
    def iterates_records(self) -> bool:
        return self.deep or self.show_records
