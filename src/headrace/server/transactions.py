"""The transaction coordinator of a node: made of its parts, and kept going."""

from contextlib import AsyncExitStack

from headrace.api.services import Services
from headrace.coordinator.hosted_shard import ShardSettings
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.coordinator.shard import ShardContext
from headrace.protocol.prefixed import TRANSACTION_LOG
from headrace.server.background import Background
from headrace.transactions.coordinator import (
    TRANSACTION_TOPIC,
    TransactionCoordinator,
    TransactionSettings,
)
from headrace.transactions.local_markers import LocalMarkers
from headrace.transactions.marker_sender import MarkerSender
from headrace.transactions.shard import TransactionShard
from headrace.transactions.verification import TransactionVerifier, VerificationSettings


def start_transactions(services: Services, background: Background, stack: AsyncExitStack) -> None:
    """Serve the transactional ids whose partitions this node leads, until the stack is left."""
    coordinator = join_transactions(services)
    stack.push_async_callback(coordinator.runtime.close)
    coordinator.runtime.start()
    _schedule(services, coordinator, background)


def join_transactions(services: Services) -> TransactionCoordinator:
    """Put the parts together and hand them to whoever answers requests; nothing is served before a start."""
    replicas, clock = services.replicas, services.clock
    groups = None if services.groups is None else services.groups.runtime
    services.markers = LocalMarkers(
        replicas, groups, clock, lambda: services.config.integer("request.timeout.ms")
    )
    sender = MarkerSender(replicas.node_id, replicas.cluster, services.markers)

    def make_shard(context: ShardContext) -> TransactionShard:
        return TransactionShard(context, sender)

    runtime = CoordinatorRuntime(
        TRANSACTION_TOPIC,
        make_shard,
        ShardSettings(TRANSACTION_LOG, write_timeout_ms=services.config.integer("request.timeout.ms")),
        replicas,
        services.image,
        clock,
        services.config.integer("transaction.state.log.num.partitions"),
    )
    coordinator = TransactionCoordinator(
        runtime, sender, services.producer_ids, lambda: _settings(services), clock
    )
    services.transactions = coordinator
    services.verifier = TransactionVerifier(replicas, coordinator, lambda: _verification(services), clock)
    return coordinator


def _schedule(services: Services, coordinator: TransactionCoordinator, background: Background) -> None:
    def seconds(key: str) -> float:
        return services.config.integer(key) / 1000

    background.every(
        "aborting transactions that timed out",
        lambda: seconds("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        coordinator.abort_timed_out,
    )
    background.every(
        "removing expired transactional ids",
        lambda: seconds("transaction.remove.expired.transaction.cleanup.interval.ms"),
        coordinator.remove_expired,
    )


def _settings(services: Services) -> TransactionSettings:
    config = services.config
    return TransactionSettings(
        config.integer("transaction.max.timeout.ms"),
        config.integer("transactional.id.expiration.ms"),
        config.flag("transaction.two.phase.commit.enable"),
    )


def _verification(services: Services) -> VerificationSettings:
    config = services.config
    return VerificationSettings(
        config.flag("transaction.partition.verification.enable"),
        config.integer("add.partitions.to.txn.retry.backoff.ms"),
        min(
            config.integer("add.partitions.to.txn.retry.backoff.max.ms"), config.integer("request.timeout.ms")
        ),
    )
