"""From text to value and back: types, bounds, and the words of a refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.definition import ConfigKey, Importance
from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.refusals import InvalidConfig
from headrace.config.values import ConfigValue, Kind, Password, java_double, render, shown_in_error
from headrace.errors import ErrorCode


def a_key(kind: Kind) -> ConfigKey:
    return ConfigKey("the.key", kind, None, Importance.LOW, "A key.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " True\n", True),
        (Kind.BOOLEAN, "false", False),
        (Kind.STRING, " a b ", "a b"),
        (Kind.INT, "+7", 7),
        (Kind.INT, "-2147483648", -(2**31)),
        (Kind.SHORT, "32767", 32767),
        (Kind.LONG, "9223372036854775807", 2**63 - 1),
        (Kind.DOUBLE, "1e3", 1000.0),
        (Kind.DOUBLE, ".5f", 0.5),
        (Kind.DOUBLE, "0x1p3", 8.0),
        (Kind.DOUBLE, "-Infinity", float("-inf")),
        (Kind.LIST, "", ()),
        (Kind.LIST, "a , b,c", ("a", "b", "c")),
        (Kind.LIST, "a,,b,", ("a", "", "b", "")),
    ],
)
def test_a_text_is_read_as_kafka_reads_it(kind: Kind, text: str, value: ConfigValue) -> None:
    assert a_key(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (Kind.BOOLEAN, "yes", "Expected value to be either true or false"),
        (Kind.INT, "2147483648", "Not a number of type INT"),
        (Kind.INT, "1.0", "Not a number of type INT"),
        (Kind.INT, "1_000", "Not a number of type INT"),
        (Kind.INT, "9" * 6000, "Not a number of type INT"),
        (Kind.SHORT, "40000", "Not a number of type SHORT"),
        (Kind.LONG, "", "Not a number of type LONG"),
        (Kind.DOUBLE, "half", "Not a number of type DOUBLE"),
        (Kind.CLASS, "com.example.Tea", "Class com.example.Tea could not be found."),
    ],
)
def test_a_refusal_names_the_key_the_value_and_the_reason(kind: Kind, text: str, reason: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        a_key(kind).parse(text)
    assert str(refusal.value) == f"Invalid value {text} for configuration the.key: {reason}"
    assert (refusal.value.key, refusal.value.value) == ("the.key", text)
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_a_list_with_a_rule_drops_what_is_said_twice() -> None:
    assert BROKER_KEYS["log.dirs"].parse("/a,/b,/a") == ("/a", "/b")


def test_a_required_key_has_no_initial_value() -> None:
    with pytest.raises(InvalidConfig, match=r'Missing required configuration "node.id" which has no default'):
        BROKER_KEYS["node.id"].initial()


def test_a_password_does_not_show_itself() -> None:
    secret = BROKER_KEYS["ssl.key.password"].parse("hunter2")
    assert isinstance(secret, Password)
    assert secret.reveal() == "hunter2"
    assert render(secret) is None
    for shown in (repr(secret), str(secret), f"{secret}", shown_in_error(secret), repr([secret])):
        assert "hunter2" not in shown
    assert secret == Password("hunter2") != Password("other")
    assert hash(secret) == hash(Password("hunter2"))


def test_values_are_shown_as_kafka_shows_them() -> None:
    assert [render(value) for value in (True, 7, 0.5, ("a", "b"), (), None)] == [
        "true",
        "7",
        "0.5",
        "a,b",
        "",
        None,
    ]
    assert shown_in_error(("a", "b")) == "[a, b]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2147483647.0, "2.147483647E9"),
        (1e7, "1.0E7"),
        (9999999.5, "9999999.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-1e-7, "-1.0E-7"),
        (123456789012345.0, "1.23456789012345E14"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False))
def test_a_printed_double_reads_back_as_itself(value: float) -> None:
    assert a_key(Kind.DOUBLE).parse(java_double(value)) == value


@given(st.sampled_from(list(Kind)[1:]), st.text())
def test_any_text_is_read_or_refused(kind: Kind, text: str) -> None:
    key = a_key(kind)
    refused = []
    try:
        key.parse(text)
    except InvalidConfig as refusal:
        refused.append(refusal.key)
    assert refused in ([], ["the.key"])
