"""What can be set on a Kafka with all its guards up: ACLs, quotas, users, tokens, settings of groups."""

import json
from pathlib import Path

from compat import support_tools as tools
from compat.support_seat import HOST
from compat.support_tools import KafkaTools

PASSWORD = "a-pass-word"
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"
#: Kinds of records that hold these settings; all but the last hold nothing else.
RECORD_KINDS = {
    "ACCESS_CONTROL_ENTRY_RECORD",
    "CLIENT_QUOTA_RECORD",
    "USER_SCRAM_CREDENTIAL_RECORD",
    "DELEGATION_TOKEN_RECORD",
    "CONFIG_RECORD",
}
ACLS = (
    ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"),
    ("--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "Write", "--topic", "orders"),
    (
        "--allow-principal",
        "User:*",
        "--operation",
        "Describe",
        "--topic",
        "pre-",
        "--resource-pattern-type",
        "prefixed",
    ),
    ("--allow-principal", "User:alice", "--operation", "Read", "--group", "*"),
    ("--allow-principal", "User:carol", "--operation", "Alter", "--cluster"),
    ("--allow-principal", "User:carol", "--operation", "Write", "--transactional-id", "pay"),
    ("--allow-principal", "User:alice", "--operation", "CreateTokens", "--user-principal", "User:bob"),
)
SETTINGS = (
    (
        "producer_byte_rate=1024000,consumer_byte_rate=2048000",
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
    ),
    ("request_percentage=55.5", "--entity-type", "users", "--entity-default"),
    ("controller_mutation_rate=7", "--entity-type", "clients", "--entity-name", "batch"),
    (
        "producer_byte_rate=99",
        *("--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients", "--entity-default"),
    ),
    ("connection_creation_rate=12", "--entity-type", "ips", "--entity-name", "10.1.2.3"),
    (
        f"SCRAM-SHA-256=[iterations=4096,password={PASSWORD}]",
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
    ),
    (
        f"SCRAM-SHA-512=[iterations=8192,password={PASSWORD}]",
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
    ),
    (
        f"SCRAM-SHA-256=[iterations=5000,password={PASSWORD}]",
        "--entity-type",
        "users",
        "--entity-name",
        "bob",
    ),
    (
        "consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest",
        *("--entity-type", "groups", "--entity-name", "readers"),
    ),
    (
        "interval.ms=60000,metrics=[org.apache.kafka.producer.],match=[client_id=batch.*]",
        *("--entity-type", "client-metrics", "--entity-name", "watched"),
    ),
)
DESCRIBED = ("users", "clients", "ips", "groups", "client-metrics")


def guarded_properties(listeners: str, sasl_port: int) -> dict[str, str]:
    """What Kafka needs so that all of this can be set: an authorizer, a SASL listener, a key for tokens."""
    return {
        "listeners": f"{listeners},SASL_PLAINTEXT://{HOST}:{sasl_port}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{JAAS};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "delegation.token.secret.key": "a-secret-key",
    }


class Guards:
    """Sets everything, and describes it."""

    def __init__(self, java: KafkaTools, address: str, sasl_port: int, directory: Path) -> None:
        self._java = java
        self._open = ("--bootstrap-server", address)
        login = directory / "alice.properties"
        login.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={JAAS} username="alice" password="{PASSWORD}";\n',
            encoding="utf-8",
        )
        self._as_alice = ("--bootstrap-server", f"{HOST}:{sasl_port}", "--command-config", str(login))

    def set_everything(self) -> None:
        """One of each kind, and more than one where kinds may be mixed up."""
        for acl in ACLS:
            self._java.run(tools.ACLS, *self._open, "--add", *acl)
        for setting, *entity in SETTINGS:
            self._java.run(tools.CONFIGS, *self._open, "--alter", "--add-config", setting, *entity)
        for renewer in ("User:bob", "User:carol"):
            lifetime = ("--max-life-time-period", "-1", "--renewer-principal", renewer)
            self._java.run(tools.DELEGATION_TOKENS, *self._as_alice, "--create", *lifetime)

    def describe(self) -> dict[str, list[str]]:
        """All of it as Kafka's tools print it. That alice can log in is shown on the way."""
        described = {"acls": self._java.run(tools.ACLS, *self._open, "--list").lines}
        for kind in DESCRIBED:
            told = self._java.run(tools.CONFIGS, *self._open, "--describe", "--entity-type", kind)
            described[kind] = told.lines
        tokens = self._java.run(tools.DELEGATION_TOKENS, *self._as_alice, "--describe")
        described["tokens"] = tokens.lines
        return {name: sorted(map(_in_order, lines)) for name, lines in described.items()}


def _in_order(line: str) -> str:
    """A described line with its settings sorted: Kafka's tool prints them as a hash table has them."""
    entity, are, settings = line.partition(" are ")
    return entity + are + ", ".join(sorted(settings.split(", ")))


def settings_in(java: KafkaTools, snapshot: Path) -> list[str]:
    """The records of these kinds in a snapshot of the metadata, as Kafka's tool decodes them."""
    dumped = java.run(
        tools.DUMP_LOG, "--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(snapshot)
    )
    payloads = [line[line.index("{") :] for line in dumped.lines if '"type":' in line]
    return sorted(text for text in payloads if json.loads(text)["type"] in RECORD_KINDS)
