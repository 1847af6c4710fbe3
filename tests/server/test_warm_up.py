"""What the first clients will need is compiled before they come, a little at a time."""

import asyncio
from collections.abc import Callable
from typing import cast

from headrace.api.table import BROKER_APIS
from headrace.protocol.api_table import ApiKey
from headrace.server.warm_up import EXPECTED, FIRST_SECONDS, PAUSE_SECONDS, WarmUp


def test_only_what_this_node_speaks_is_expected() -> None:
    spoken = {api.key: api.versions for api in BROKER_APIS}
    for key, versions in EXPECTED.items():
        low, high = spoken[key]
        assert all(low <= version <= high for version in versions), key


def test_each_step_compiles_one_message_until_all_are_there() -> None:
    apis = {api.key: api for api in BROKER_APIS}
    for key in EXPECTED:
        apis[key].request.DECODERS.clear()
        apis[key].response.ENCODERS.clear()

    def compiled() -> int:
        return sum(len(apis[key].request.DECODERS) + len(apis[key].response.ENCODERS) for key in EXPECTED)

    warming = WarmUp(BROKER_APIS)
    count = 0
    while warming.step():
        count += 1
        assert compiled() == count
    assert count == 2 * sum(map(len, EXPECTED.values()))
    for key, versions in EXPECTED.items():
        assert set(versions) == set(apis[key].request.DECODERS) == set(apis[key].response.ENCODERS)


def test_apis_that_a_node_does_not_speak_are_left_out() -> None:
    assert not WarmUp([api for api in BROKER_APIS if api.key not in EXPECTED]).step()


def test_the_steps_follow_each_other_with_pauses() -> None:
    (api,) = (api for api in BROKER_APIS if api.key == ApiKey.API_VERSIONS)
    planned: list[tuple[float, Callable[[], None]]] = []

    class Loop:
        def call_later(self, delay: float, callback: Callable[[], None]) -> None:
            planned.append((delay, callback))

    WarmUp([api]).begin(cast(asyncio.AbstractEventLoop, Loop()))
    delays = []
    while planned:
        delay, callback = planned.pop()
        delays.append(delay)
        callback()
    steps = 2 * len(EXPECTED[ApiKey.API_VERSIONS])
    assert delays == [FIRST_SECONDS] + [PAUSE_SECONDS] * steps
