"""Subscriptions by expression: what they match, when they are resolved, and what is wrong with some."""

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.groups import consumer_regexes
from headrace.groups.consumer_regexes import REFRESH_MIN_INTERVAL_MS, compiled
from headrace.groups.consumer_settings import ConsumerSettings
from tests.support_consumer_groups import Client, ConsumerContext, consumer_groups
from tests.support_log import on_loop


def settled(context: ConsumerContext, *clients: Client) -> None:
    context.pass_time(1_000)
    context.settle(*clients)


@on_loop
async def test_whole_names_have_to_match() -> None:
    async with consumer_groups() as context:
        for name in ("foo", "foo-1", "afoo", "bar"):
            context.create_topic(name, 1)
        client = Client(context, "one", regex="foo.*").join()
        assert (client.epoch, client.owned) == (1, {}), "it is found out aside of the request"
        settled(context, client)
        assert set(client.owned) == {"foo", "foo-1"}
        assert context.described().members[0].subscribed_topic_regex == "foo.*"


@on_loop
async def test_names_and_an_expression_add_up() -> None:
    async with consumer_groups() as context:
        for name in ("foo", "bar", "rest"):
            context.create_topic(name, 1)
        client = Client(context, "one", "bar", regex="f.*").join()
        settled(context, client)
        assert set(client.owned) == {"foo", "bar"}


@on_loop
async def test_new_topics_are_found_but_not_sooner_than_every_ten_seconds() -> None:
    async with consumer_groups() as context:
        context.create_topic("foo-1", 1)
        client = Client(context, "one", regex="foo.*").join()
        settled(context, client)
        context.create_topic("foo-2", 1)
        client.beat()
        context.pass_time(1)
        client.beat()
        assert set(client.owned) == {"foo-1"}
        context.pass_time(REFRESH_MIN_INTERVAL_MS)
        client.beat()
        settled(context, client)
        assert set(client.owned) == {"foo-1", "foo-2"}


@on_loop
async def test_expressions_are_resolved_anew_from_time_to_time() -> None:
    async with consumer_groups(ConsumerSettings(regex_refresh_interval_ms=20_000)) as context:
        context.create_topic("foo", 1)
        client = Client(context, "one", regex="foo.*").join()
        settled(context, client)
        first = context.group.regexes["foo.*"].timestamp_ms
        for _ in range(25):
            context.pass_time(1_000)
            client.beat()
        assert context.group.regexes["foo.*"].timestamp_ms >= first + 20_000


@on_loop
async def test_an_expression_that_nobody_uses_any_more_is_forgotten() -> None:
    async with consumer_groups() as context:
        context.create_topic("foo", 1)
        context.create_topic("bar", 1)
        one = Client(context, "one", regex="foo").join()
        two = Client(context, "two", regex="foo").join()
        settled(context, one, two)
        two.leave()
        settled(context, one)
        assert set(context.group.regexes) == {"foo"}
        context.pass_time(REFRESH_MIN_INTERVAL_MS)
        one.subscribe(regex="bar")
        settled(context, one)
        assert set(context.group.regexes) == {"bar"}
        assert set(one.owned) == {"bar"}
        one.subscribe("foo", regex="")
        settled(context, one)
        assert context.group.regexes == {}
        assert set(one.owned) == {"foo"}
        one.leave()
        assert context.group.is_empty


@on_loop
async def test_a_second_member_with_a_known_expression_shares_at_once() -> None:
    async with consumer_groups() as context:
        context.create_topic("foo", 2)
        one = Client(context, "one", regex="foo").join()
        settled(context, one)
        context.pass_time(1_000)
        two = Client(context, "two", regex="foo").join()
        assert context.group.epoch == context.group.target_epoch == 3
        context.settle(one, two)
        assert len(one.partitions) == len(two.partitions) == 1


@on_loop
async def test_many_topics_are_looked_at_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_regexes, "_NAMES_PER_TURN", 3)
    async with consumer_groups() as context:
        for number in range(10):
            context.create_topic(f"foo-{number}", 1)
        client = Client(context, "one", regex="foo-[0-7]").join()
        context.groups.runtime.timers.fire_due()
        settled(context, client)
        assert len(client.owned) == 8


@on_loop
async def test_an_expression_that_makes_no_sense_is_refused() -> None:
    async with consumer_groups() as context:
        code, text = context.refusal(
            member_id="one", rebalance_timeout_ms=1, subscribed_topic_regex="(foo", topic_partitions=[]
        )
        assert code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert text == "SubscribedTopicRegex `(foo` is not a valid regular expression: missing closing )."


@pytest.mark.parametrize(
    ("regex", "fault"),
    [
        ("[", "missing closing ]"),
        ("(", "missing closing )"),
        ("a**", "invalid nested repetition operator"),
        ("(?P<x", "invalid named capture"),
        ("*", "missing argument to repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("(?=x)", "invalid or unsupported Perl syntax"),
        ("\\8", "invalid escape sequence"),
        ("x)", "regexp/syntax: internal error"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_that_clients_know(regex: str, fault: str) -> None:
    with pytest.raises(KafkaError) as caught:
        compiled(regex)
    assert caught.value.message.endswith(f": {fault}.")
