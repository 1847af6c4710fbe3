"""How many connections a node's configuration allows, in all and per listener."""

import asyncio
from pathlib import Path

import pytest

from headrace.config.node import NodeConfig
from headrace.config.server_properties import read_node_config
from headrace.net.limits import UNLIMITED, SocketBudget
from headrace.net.network import Network
from headrace.net.service import Service
from headrace.server.listeners import (
    CONNECTIONS_MIN,
    DESCRIPTORS_KEPT,
    Listeners,
    NotServing,
    listener_limits,
    node_limits,
    node_network,
    socket_budget,
)
from headrace.system.clock import SystemClock
from tests.support_log import on_loop
from tests.support_node import HOST, node_properties

TWO_BROKER_LISTENERS = {
    "listeners": "CLIENTS://:9092,BROKERS://:9091,CONTROLLER://:9093",
    "advertised.listeners": "CLIENTS://localhost:9092,BROKERS://localhost:9091",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


def config_with(overrides: dict[str, str]) -> NodeConfig:
    return read_node_config(node_properties(Path("/data"), overrides=overrides))


def test_limits_of_the_node_are_those_of_its_configuration() -> None:
    limits = node_limits(
        config_with(
            {
                "max.connections": "100",
                "max.connections.per.ip": "10",
                "max.connections.per.ip.overrides": "10.0.0.1:50",
                "max.connection.creation.rate": "20",
            }
        )
    )
    assert (limits.connections_max, limits.connections_per_ip_max, limits.creation_rate_max) == (100, 10, 20)
    assert limits.connections_per_ip_overrides == {"10.0.0.1": 50}


def test_a_listener_is_unlimited_unless_its_own_keys_say_otherwise() -> None:
    config = config_with(
        {
            **TWO_BROKER_LISTENERS,
            "max.connections": "100",
            "listener.name.clients.max.connections": "30",
            "listener.name.clients.max.connection.creation.rate": "5",
        }
    )
    by_name = {endpoint.name: listener_limits(config, endpoint) for endpoint in config.listeners}
    assert (by_name["CLIENTS"].connections_max, by_name["CLIENTS"].creation_rate_max) == (30, 5)
    assert by_name["BROKERS"].connections_max == UNLIMITED


@pytest.mark.parametrize(
    ("overrides", "protected"),
    [({}, {"CONTROLLER"}), (TWO_BROKER_LISTENERS, {"BROKERS", "CONTROLLER"})],
    ids=["one listener for all", "one of their own"],
)
def test_brokers_and_controllers_get_through_whatever_clients_do(
    overrides: dict[str, str], protected: set[str]
) -> None:
    config = config_with(overrides)
    found = {each.name for each in config.listeners if listener_limits(config, each).is_protected}
    assert found == protected


ONE_LISTENER = {"listeners": f"PLAINTEXT://{HOST}:0,CONTROLLER://{HOST}:0"}
ONE_MORE = {
    "listeners": f"PLAINTEXT://{HOST}:0,LATER://{HOST}:0,CONTROLLER://{HOST}:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LATER:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


def network_with(overrides: dict[str, str]) -> Network:
    return node_network(asyncio.get_running_loop(), SystemClock(), config_with(overrides))


@on_loop
async def test_requests_on_their_way_in_are_bounded_as_configured() -> None:
    network = network_with({"queued.max.request.bytes": "200000000"})
    assert network.buffers.large_bytes_max == 200_000_000


@on_loop
async def test_a_listener_of_the_metadata_waits_with_the_others_until_the_node_serves() -> None:
    network, services = network_with(ONE_LISTENER), dict[str, Service]()
    listeners = Listeners(network)
    first, second = config_with(ONE_LISTENER), config_with(ONE_MORE)
    listeners.open(first, first.listeners)
    listeners.reconfigure(first, second)
    assert listeners.bound(second.broker_listeners, lambda: HOST)[1].port > 0
    assert network.listeners == []
    listeners.start(lambda name: services.setdefault(name, NotServing()))
    assert {each.name for each in network.listeners} == {"PLAINTEXT", "LATER", "CONTROLLER"}
    assert all(each.service is services[each.name] for each in network.listeners)
    listeners.reconfigure(second, first)
    listeners.reconfigure(first, second)
    assert {each.name for each in network.listeners} == {"PLAINTEXT", "LATER", "CONTROLLER"}
    listeners.release()
    await network.stop(0)


def test_connections_are_what_files_leave_of_the_descriptors() -> None:
    assert socket_budget(None) == SocketBudget(UNLIMITED, UNLIMITED)
    assert socket_budget(1000).connections_max == 1000 - DESCRIPTORS_KEPT
    assert socket_budget(10).connections_max == CONNECTIONS_MIN
