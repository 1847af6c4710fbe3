"""A client's configuration: Kafka's names and defaults, and a reason for everything that is refused."""

import pickle

import pytest

from headrace.client.config import ClientConfig, property_name
from headrace.client.config_keys import KEYS
from headrace.client.errors import ConfigRefused


def test_kafkas_names_become_typed_fields() -> None:
    config = ClientConfig.from_properties(
        {
            "bootstrap.servers": "a:9092, [::1]:9093,PLAINTEXT://c:9094",
            "client.id": "me",
            "request.timeout.ms": "1500",
            "check.crcs": "False",
            "isolation.level": "read_committed",
            "fetch.max.bytes": 1000,
            "acks": "all",
            "compression.type": "ZSTD",
        }
    )
    assert config.bootstrap_servers == ("a:9092", "[::1]:9093", "PLAINTEXT://c:9094")
    assert [str(each) for each in config.bootstrap_addresses] == ["a:9092", "[::1]:9093", "c:9094"]
    assert config.client_id == "me"
    assert config.request_timeout_ms == 1500
    assert config.check_crcs is False
    assert config.is_read_committed
    assert config.fetch_max_bytes == 1000
    assert config.acks == -1
    assert config.compression_type == "zstd"


def test_defaults_are_kafkas() -> None:
    config = ClientConfig()
    assert config.request_timeout_ms == 30_000
    assert config.metadata_max_age_ms == 300_000
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == (50, 1000)
    assert (config.fetch_min_bytes, config.fetch_max_wait_ms) == (1, 500)
    assert (config.fetch_max_bytes, config.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert (config.batch_size, config.linger_ms, config.buffer_memory) == (16_384, 5, 33_554_432)
    assert config.enable_idempotence


def test_every_field_has_a_key_and_every_key_a_field() -> None:
    assert {property_name(name) for name in ClientConfig.__dataclass_fields__} == set(KEYS)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("bootstrap.server", "bootstrap.servers"),
        ("fetch.max.byte", "fetch.max.bytes"),
        ("isolation_level", "isolation.level"),
        ("sessions.timeout.ms", "session.timeout.ms"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(name: str, nearest: str) -> None:
    with pytest.raises(ConfigRefused, match=f"^{name}: .*did you mean {nearest}\\?") as refused:
        ClientConfig.from_properties({name: "x"})
    assert refused.value.key == name


def test_a_key_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigRefused, match=r"^zzz: no such configuration key$"):
        ClientConfig.from_properties({"zzz": 1})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("security.protocol", "SASL_SSL", "TLS"),
        ("sasl.mechanism", "PLAIN", "SASL"),
        ("sasl.jaas.config", "secret", "SASL"),
        ("ssl.truststore.location", "somewhere", "TLS"),
        ("group.id", "g", "groups"),
        ("enable.auto.commit", "true", "groups"),
        ("auto.offset.reset", "latest", "never silently"),
        ("key.deserializer", "X", "bytes"),
        ("transactional.id", "t", "transactions"),
        ("interceptor.classes", "a.B", "Java"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_reason(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigRefused, match=reason) as refused:
        ClientConfig.from_properties({name: value})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security.protocol", "PLAINTEXT"),
        ("enable.auto.commit", False),
        ("auto.offset.reset", "none"),
        ("interceptor.classes", ""),
    ],
)
def test_what_asks_for_nothing_may_stand(name: str, value: object) -> None:
    assert ClientConfig.from_properties({name: value}) == ClientConfig()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request.timeout.ms", "soon"),
        ("request.timeout.ms", 0),
        ("request.timeout.ms", True),
        ("request.timeout.ms", 2**31),
        ("fetch.min.bytes", -1),
        ("check.crcs", "yes"),
        ("isolation.level", "serializable"),
        ("client.id", 7),
        ("acks", "2"),
        ("acks", "some"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", 0),
        ("compression.lz4.level", 18),
        ("compression.zstd.level", 23),
        ("bootstrap.servers", ""),
        ("bootstrap.servers", []),
        ("bootstrap.servers", "nohost"),
        ("bootstrap.servers", ":9092"),
        ("bootstrap.servers", "a:port"),
        ("bootstrap.servers", "a:70000"),
        ("bootstrap.servers", "::1:9092"),
        ("bootstrap.servers", "SSL://a:9092"),
        ("client.dns.lookup", "resolve_canonical_bootstrap_servers_only"),
    ],
)
def test_values_that_are_none_are_refused_by_either_way_in(name: str, value: object) -> None:
    with pytest.raises(ConfigRefused, match=f"^{name}: "):
        ClientConfig.from_properties({name: value})
    with pytest.raises(ConfigRefused, match=f"^{name}: "):
        ClientConfig(**{name.replace(".", "_"): value})  # type: ignore[arg-type]


def test_fewer_acknowledgements_without_a_word_on_idempotence_switch_it_off() -> None:
    assert not ClientConfig.from_properties({"acks": "1"}).enable_idempotence
    assert not ClientConfig.from_properties({"retries": "0"}).enable_idempotence


@pytest.mark.parametrize(
    "properties",
    [
        {"acks": "1", "enable.idempotence": "true"},
        {"retries": 0, "enable.idempotence": True},
        {"max.in.flight.requests.per.connection": 6},
        {"delivery.timeout.ms": 30_004},
    ],
)
def test_what_does_not_go_together_is_refused(properties: dict[str, object]) -> None:
    with pytest.raises(ConfigRefused, match=r"must"):
        ClientConfig.from_properties(properties)


def test_a_configuration_goes_to_other_processes() -> None:
    config = ClientConfig(client_id="there")
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize("request_ms", [200_000, 2**31 - 1])
def test_longer_requests_without_a_word_on_deliveries_make_these_longer(request_ms: int) -> None:
    config = ClientConfig.from_properties({"request.timeout.ms": str(request_ms)})
    assert config.request_timeout_ms == request_ms
    assert config.delivery_timeout_ms == min(request_ms + config.linger_ms, 2**31 - 1)
    with pytest.raises(ConfigRefused, match=r"^delivery\.timeout\.ms: "):
        ClientConfig.from_properties({"request.timeout.ms": 200_000, "delivery.timeout.ms": 120_000})
