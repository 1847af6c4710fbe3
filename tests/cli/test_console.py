"""`headrace produce` and `headrace consume` against a node, as people and pipelines use them."""

import base64
import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support_console import PATIENCE_SECONDS, Console

if TYPE_CHECKING:
    from tests.support_node import RunningNode


@pytest.fixture
def console(shared_node: "RunningNode") -> Console:
    return Console(shared_node.bootstrap)


def test_lines_go_in_and_come_out(console: Console) -> None:
    console.succeed("topic", "create", "con-lines")
    console.succeed("produce", "con-lines", stdin=b"one\n\n\xfftwo\nlast without an end")
    assert (
        console.succeed("consume", "con-lines", "--until", "end") == b"one\n\n\xfftwo\nlast without an end\n"
    )
    assert console.succeed("consume", "con-lines", "--from", "offset:1", "--max", "2") == b"\n\xfftwo\n"
    assert console.succeed("consume", "con-lines", "--from", "last:1", "--until", "end") == (
        b"last without an end\n"
    )


def test_json_keeps_everything_on_the_way_from_topic_to_topic(console: Console) -> None:
    console.succeed("topic", "create", "con-json", "-p", "3")
    console.succeed("topic", "create", "con-copy", "-p", "3")
    lines = [
        {
            "key": "k",
            "value": "hé",
            "headers": [{"key": "h", "value": "1"}],
            "partition": 2,
            "timestamp": 1000,
        },
        {"key_base64": "/w==", "value": None, "partition": 1, "timestamp": 2000},
    ]
    sent = "\n".join(map(json.dumps, lines)).encode()
    console.succeed("produce", "con-json", "--format", "json", "--compression", "zstd", stdin=sent)
    first = console.succeed("consume", "con-json", "--until", "end", "--format", "json")
    console.succeed("produce", "con-copy", "--format", "json", "--acks", "1", stdin=first)
    second = console.succeed("consume", "con-copy", "--until", "end", "--format", "json")
    assert sorted(first.replace(b"con-json", b"con-copy").splitlines()) == sorted(second.splitlines())
    by_time = console.succeed(
        "consume", "con-json", "--from", "time:1500", "--until", "end", "--format", "json"
    )
    assert json.loads(by_time)["key_base64"] == "/w=="


def test_the_first_bad_line_is_named_and_all_before_it_written(console: Console) -> None:
    console.succeed("topic", "create", "con-bad")
    message = console.fail("produce", "con-bad", "--key-separator", ":", stdin=b"a:1\nb:2\nnone\nc:3\n")
    assert message == (
        "headrace: line 3: it has no ':' between key and value (--key-separator); 2 records were written, "
        "nothing from line 3 on\n"
    )
    large = b"small\n" + b"x" * 1_048_570 + b"\nafter\n"
    assert "line 2: it takes " in console.fail("produce", "con-bad", stdin=large)
    beyond = b'{"value": "in"}\n{"value": "out", "partition": 4}\n'
    assert "has no partition 4" in console.fail("produce", "con-bad", "--format", "json", stdin=beyond)
    out = console.succeed("consume", "con-bad", "--until", "end", "--key-separator", r"\t")
    assert out == b"a\t1\nb\t2\nnull\tsmall\nnull\tin\n"


def test_what_the_broker_refuses_is_told_with_its_reason(console: Console) -> None:
    console.succeed("topic", "create", "con-compact", "--config", "cleanup.policy=compact")
    message = console.fail("produce", "con-compact", stdin=b"no key\n")
    assert "con-compact-0: 1 row" in message


def test_topics_and_places_that_are_not_there_are_told(console: Console) -> None:
    console.succeed("topic", "create", "con-there")
    assert "no topic 'con-ther'" in console.fail("produce", "con-ther", stdin=b"x\n")
    assert "did you mean 'con-there'" in console.fail("consume", "con-ther")
    assert "has no partition 5" in console.fail("consume", "con-there", "--partition", "5")
    assert "offset 9 is beyond the end" in console.fail("consume", "con-there", "--from", "offset:9")
    assert "did you mean linger.ms" in console.fail("produce", "con-there", "--config", "lingr.ms=1")
    assert console.run("consume", "con-there", "--from", "banana").status == 2
    assert console.run("consume", "con-there", "--until", "beginning").status == 2


def test_typed_lines_are_sent_at_once_and_followed_live(console: Console) -> None:
    console.succeed("topic", "create", "con-live")
    follow = ("consume", "con-live", "--from", "beginning")
    with console.started("produce", "con-live") as producer, console.started(*follow) as consumer:
        assert producer.stdin is not None
        assert consumer.stdout is not None
        for line in (b"first\n", b"second\n"):
            producer.stdin.write(line)
            producer.stdin.flush()
            # The producer's input is still open: nothing but the pause made it send.
            assert consumer.stdout.readline() == line
        producer.send_signal(signal.SIGTERM)
        consumer.send_signal(signal.SIGINT)
        assert producer.wait(PATIENCE_SECONDS) == 143
        assert consumer.wait(PATIENCE_SECONDS) == 130
        for process in (producer, consumer):
            assert process.stderr is not None
            assert process.stderr.read() == b""


def test_a_closed_pipe_ends_a_follower_quietly_with_nothing_more_to_print(console: Console) -> None:
    console.succeed("topic", "create", "con-head")
    console.succeed("produce", "con-head", stdin=b"one\n")
    with console.started("consume", "con-head", "--from", "beginning") as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"one\n"
        consumer.stdout.close()
        assert consumer.wait(PATIENCE_SECONDS) == 0
        assert consumer.stderr is not None
        assert consumer.stderr.read() == b""


def test_partitions_that_a_topic_gets_are_followed_too(console: Console) -> None:
    console.succeed("topic", "create", "con-grow")
    follow = ("consume", "con-grow", "--from", "beginning", "--config", "metadata.max.age.ms=200")
    with console.started(*follow) as consumer:
        assert consumer.stdout is not None
        console.succeed("produce", "con-grow", stdin=b"old\n")
        assert consumer.stdout.readline() == b"old\n"
        console.succeed("topic", "alter", "con-grow", "--partitions", "2")
        console.succeed("produce", "con-grow", "--format", "json", stdin=b'{"value": "new", "partition": 1}')
        assert consumer.stdout.readline() == b"new\n"


def test_several_topics_and_single_partitions_are_read(console: Console) -> None:
    for name in ("con-a", "con-b"):
        console.succeed("topic", "create", name, "-p", "2")
        lines = [{"value": f"{name}-{each}", "partition": each} for each in (0, 1)]
        stdin = "\n".join(map(json.dumps, lines)).encode()
        console.succeed("produce", name, "--format", "json", stdin=stdin)
    both = console.succeed("consume", "con-a", "con-b", "--until", "end", "--isolation", "read_committed")
    assert sorted(both.splitlines()) == [b"con-a-0", b"con-a-1", b"con-b-0", b"con-b-1"]
    single = console.succeed("consume", "con-a", "con-b", "--until", "end", "--partition", "1")
    assert sorted(single.splitlines()) == [b"con-a-1", b"con-b-1"]
    assert console.succeed("consume", "con-a", "--until", "offset:0") == b""
    assert console.succeed("consume", "con-a", "--max", "0") == b""


@pytest.mark.parametrize(
    ("words", "closing", "name"),
    [
        (("topic", "list"), ">&-", "output"),
        (("consume", "con-closed", "--until", "end"), ">&-", "output"),
        (("produce", "con-closed"), "<&-", "input"),
    ],
)
def test_a_stream_that_is_closed_is_told(
    console: Console, words: tuple[str, ...], closing: str, name: str
) -> None:
    done = console.run_by_shell(*words, closing=closing)
    advice = "use /dev/null if that is what is meant"
    assert done == (1, b"", f"headrace: standard {name} is closed; {advice}\n")


def test_an_offset_beyond_the_end_is_an_error_with_an_end_too(console: Console) -> None:
    console.succeed("topic", "create", "con-beyond")
    console.succeed("produce", "con-beyond", stdin=b"one\ntwo\n")
    assert console.succeed("consume", "con-beyond", "--from", "offset:2", "--until", "end") == b""
    told = console.fail("consume", "con-beyond", "--from", "offset:3", "--until", "end")
    assert "con-beyond-0: offset 3 is beyond the end: the partition holds offsets 0 to 2" in told


@pytest.mark.parametrize("value", [b"\x00" * 500_000, bytes(range(256)) * 3_000], ids=["escaped", "base64"])
def test_a_record_may_be_longer_in_json_than_it_may_be_long(console: Console, value: bytes) -> None:
    console.succeed("topic", "create", "con-long")
    console.succeed("topic", "create", "con-long-copy")
    line = json.dumps({"value_base64": base64.b64encode(value).decode()}).encode()
    console.succeed("produce", "con-long", "--format", "json", stdin=line)
    shown = console.succeed("consume", "con-long", "--until", "end", "--format", "json")
    assert len(shown) > 1_000_000
    console.succeed("produce", "con-long-copy", "--format", "json", stdin=shown)
    assert console.succeed("consume", "con-long-copy", "--until", "end") == value + b"\n"
    console.succeed("topic", "delete", "con-long", "con-long-copy")
