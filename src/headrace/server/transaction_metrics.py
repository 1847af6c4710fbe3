"""What is counted of transactions, under the names that Kafka's metrics have. Nothing is counted here."""

from typing import Final

from headrace.api.services import Services
from headrace.metrics.names import mbean_name
from headrace.metrics.registry import Registry
from headrace.transactions.coordinator import TransactionCoordinator
from headrace.transactions.verification import TransactionVerifier

_COORDINATOR: Final = "kafka.coordinator.transaction"


def bind_transactions(registry: Registry, services: Services) -> None:
    """Let a registry read what transactions come to on this node."""
    if services.transactions is not None:
        _bind_coordinator(registry, services.transactions)
    if services.verifier is not None:
        _bind_verifier(registry, services.verifier)


def _bind_coordinator(registry: Registry, coordinator: TransactionCoordinator) -> None:
    sender, loads = coordinator.sender, coordinator.runtime.loads
    registry.gauge(
        mbean_name(_COORDINATOR, "TransactionMarkerChannelManager", "UnknownDestinationQueueSize"),
        "Markers for partitions that nobody leads who could be reached.",
        lambda: sender.waiting_for_leader,
    )
    registry.gauge(
        mbean_name(_COORDINATOR, "TransactionMarkerChannelManager", "LogAppendRetryQueueSize"),
        "Transactions that are over but could not be noted as such.",
        lambda: sender.waiting_for_log,
    )
    registry.gauge(
        mbean_name("kafka.server", "transaction-coordinator-metrics", "partition-load-time-max"),
        "The longest time that loading a partition of transaction states took, in ms.",
        lambda: loads.worst_ms,
    )
    registry.gauge(
        mbean_name("kafka.server", "transaction-coordinator-metrics", "partition-load-time-avg"),
        "The time that loading a partition of transaction states took on average, in ms.",
        lambda: loads.total_ms / loads.count if loads.count else 0,
    )


def _bind_verifier(registry: Registry, verifier: TransactionVerifier) -> None:
    counters = verifier.counters
    registry.count(
        mbean_name("kafka.server", "AddPartitionsToTxnManager", "VerificationFailureRate") + "_total",
        "Partitions whose part in a transaction could not be verified.",
        lambda: counters.failures,
    )
    taken = mbean_name("kafka.server", "AddPartitionsToTxnManager", "VerificationTimeMs")
    registry.count(f"{taken}_count", "Verifications.", lambda: counters.verifications)
    registry.count(f"{taken}_sum", "Time that verifications took, in ms.", lambda: counters.total_ms)
