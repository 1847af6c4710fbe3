"""A node's consumer groups beside Kafka's: rebalances and heartbeats of the new protocol, in turns."""

import itertools
import os
import time

from bench.bench_node import SECONDS, SECONDS_VARIABLE, Contest
from bench.consumer_members import ConsumerMember, settle
from bench.group_members import await_coordinator
from bench.harness import Row, spell_time
from bench.node_brokers import Broker, brokers
from bench.node_starts import first_start
from bench.node_wire import Refused, WireClient, create_topic
from headrace.config.alteration import ResourceType
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = "assigned"
PARTITIONS = 300
MEMBERS = 100
SETTLE_ROUNDS = 3
PIPELINED = 20

_numbers = itertools.count()


def run() -> list[Row]:
    """All rows."""
    seconds = float(os.environ.get(SECONDS_VARIABLE, SECONDS))
    with brokers() as (ours, theirs, reason):
        if theirs is None:
            print(f"Kafka cannot be had, so only our own figures follow: {reason}")
        contest = Contest([ours] if theirs is None else [ours, theirs], seconds)
        for broker in contest.brokers:
            first_start(broker)
            await_coordinator(broker)
            with WireClient(broker.host, broker.port) as client:
                create_topic(client, TOPIC, PARTITIONS)
        return [*_settling_rows(contest), _heartbeat_row(contest)]


def _settling_rows(contest: Contest) -> list[Row]:
    # Kafka's code is compiled while it runs, so it gets to run before it is measured.
    contest.each(_seconds_to_settle, 1)
    figures = contest.each(_seconds_to_settle, SETTLE_ROUNDS)
    best = [min(rounds) for rounds in figures]
    ratio = best[0] / best[1] if len(best) > 1 else None
    spelt = [spell_time(each) for each in best]
    theirs = spelt[1] if len(spelt) > 1 else ""
    name = f"{MEMBERS} members settle after one joins"
    return [Row(name, spelt[0], theirs, ratio, 1.0, higher_is_better=False)]


def _seconds_to_settle(broker: Broker) -> float:
    """A group is stable; somebody joins; the time until all have their parts anew."""
    group = f"settling-{next(_numbers)}"
    _assign_at_once(broker, group)
    members = [ConsumerMember(broker, group, TOPIC, f"m-{number}") for number in range(MEMBERS)]
    newcomer = ConsumerMember(broker, group, TOPIC, "newcomer")
    try:
        settle(members, PARTITIONS)
        started = time.perf_counter()
        settle([newcomer, *members], PARTITIONS)
        return time.perf_counter() - started
    finally:
        for member in (*members, newcomer):
            member.close()


def _assign_at_once(broker: Broker, group: str) -> None:
    """What takes time shall be the work, not the pause between two assignments."""
    config = AlterableConfig(name="consumer.assignment.interval.ms", value="0")
    resource = AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=group, configs=[config])
    with WireClient(broker.host, broker.port) as client:
        reply = client.call(
            IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse, 1
        )
    if reply.responses[0].error_code:
        raise Refused("configuration", reply.responses[0].error_code)


def _heartbeat_row(contest: Contest) -> Row:
    return contest.highest(
        f"heartbeats that change nothing, {PIPELINED} members at a time",
        None,
        lambda rate: f"{rate:,.0f}/s",
        lambda broker: _heartbeats_per_second(broker, contest.seconds / 2),
    )


def _heartbeats_per_second(broker: Broker, seconds: float) -> float:
    group = f"beating-{next(_numbers)}"
    _assign_at_once(broker, group)
    members = [ConsumerMember(broker, group, TOPIC, f"m-{number}") for number in range(PIPELINED)]
    try:
        settle(members, PARTITIONS)
        count = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for member in members:
                member.send()
            for member in members:
                member.receive()
            count += len(members)
        return count / (time.perf_counter() - started)
    finally:
        for member in members:
            member.close()
