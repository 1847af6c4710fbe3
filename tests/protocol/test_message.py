"""A message is a slotted dataclass whose annotations are its schema, and costs next to nothing to import."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Annotated, get_args, get_type_hints

import pytest

from headrace.protocol.fields import Wire, version_bounds
from headrace.protocol.message import Message
from headrace.protocol.messages import fetch
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.metadata import MetadataRequest

COMPILE_COUNTER = """
import builtins, importlib, inspect, pkgutil, sys
import enum, importlib.util, typing, uuid
import headrace.ports, headrace.types
compiled = []
original_exec, original_eval, original_compile = builtins.exec, builtins.eval, builtins.compile
def watched(function):
    def call(source, *args, **kwargs):
        if not isinstance(source, type(watched.__code__)):
            compiled.append(source)
        return function(source, *args, **kwargs)
    return call
builtins.exec, builtins.eval = watched(original_exec), watched(original_eval)
from headrace.protocol import apis, codec, frame, prefixed
for package in ("headrace.protocol.messages", "headrace.protocol.disk_records"):
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
print(*compiled, file=sys.stderr)
print(len(compiled), len([name for name in sys.modules if name.startswith("headrace.protocol.")]))
"""


def test_importing_every_message_compiles_nothing() -> None:
    run = subprocess.run([sys.executable, "-c", COMPILE_COUNTER], capture_output=True, text=True, check=True)
    compiled, modules = map(int, run.stdout.split())
    assert compiled == 0, run.stderr
    assert modules > 100


def test_importing_the_codec_imports_no_messages() -> None:
    code = "import sys, headrace.protocol.codec, headrace.protocol.apis; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "headrace.protocol.codec" in run.stdout
    assert "headrace.protocol.messages" not in run.stdout
    assert "headrace.protocol.disk_records" not in run.stdout


def test_a_message_is_a_dataclass() -> None:
    request = FetchRequest(max_wait_ms=5, topics=[FetchTopic(topic="a")])
    assert dataclasses.is_dataclass(request)
    names = [field.name for field in dataclasses.fields(request)]
    assert names == [*FetchRequest.FIELD_NAMES, "unknown_tags"]
    assert dataclasses.asdict(request)["topics"][0]["topic"] == "a"
    assert dataclasses.replace(request, min_bytes=9) == FetchRequest(
        max_wait_ms=5, min_bytes=9, topics=[FetchTopic(topic="a")]
    )


def test_a_message_has_slots_and_no_dictionary() -> None:
    request = FetchRequest()
    assert not hasattr(request, "__dict__")
    with pytest.raises(AttributeError):
        request.max_wait = 5  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="max_wait"):
        FetchRequest(max_wait=5)  # type: ignore[call-arg]


def test_annotations_are_the_schema() -> None:
    hints = get_type_hints(FetchPartition, vars(fetch), include_extras=True)
    python_type, wire = get_args(hints["last_fetched_epoch"])
    assert python_type is int
    assert (wire.type, wire.versions, wire.ignorable) == ("int32", "12+", False)
    assert FetchPartition.wire("high_watermark").tag == 1
    assert (FetchRequest.API_KEY, FetchRequest.VERSION_MIN, FetchRequest.VERSION_MAX) == (1, 4, 18)
    assert FetchRequest.FLEXIBLE_SINCE == 12


def test_every_message_has_its_own_lists_and_structures() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(FetchTopic())
    first.replica_state.replica_id = 3
    assert second.topics == []
    assert second.replica_state.replica_id == -1


def test_messages_are_equal_by_their_values() -> None:
    assert FetchTopic(topic="a") == FetchTopic(topic="a")
    assert FetchTopic(topic="a") != FetchTopic(topic="b")
    assert FetchTopic(topic="a") != FetchTopic(topic="a", unknown_tags=((5, b""),))
    assert FetchTopic() != FetchPartition()


def test_a_message_shows_its_values() -> None:
    assert repr(MetadataRequest(topics=None)) == (
        "MetadataRequest(topics=None, allow_auto_topic_creation=True, "
        "include_cluster_authorized_operations=False, include_topic_authorized_operations=False)"
    )
    assert "unknown_tags=((5, b'x'),)" in repr(MetadataRequest(unknown_tags=((5, b"x"),)))


def test_messages_can_be_copied_and_pickled() -> None:
    request = FetchRequest(topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition=1)])])
    assert copy.deepcopy(request) == request
    assert pickle.loads(pickle.dumps(request)) == request


def test_a_class_body_declares_a_message() -> None:
    class Point(Message, versions="0-1", flexible="1+"):
        x: Annotated[int, Wire("int32", "0+")] = 0
        label: Annotated[str | None, Wire("string", "1+", nullable="1+")] = None

    assert Point(x=4).label is None
    assert Point.FIELD_NAMES == ("x", "label")


@pytest.mark.parametrize(
    ("spelt", "bounds"), [("0+", (0, 32767)), ("2-7", (2, 7)), ("4", (4, 4)), ("none", (0, -1))]
)
def test_version_ranges_are_spelt_as_in_schemas(spelt: str, bounds: tuple[int, int]) -> None:
    assert version_bounds(spelt) == bounds
