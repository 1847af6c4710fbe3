"""Keys of transactions and idempotent producers."""

from headrace.config.keys.notation import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LOW, SHORT, key
from headrace.config.rules import Range

KEYS = (
    key("transaction.max.timeout.ms", INT, 900_000, HIGH, Range(1)).means(
        "The longest time-out that a producer may ask for its transactions, in milliseconds; more is refused."
    ),
    key("transactional.id.expiration.ms", INT, 604_800_000, HIGH, Range(1)).means(
        "How long the state of an unused transactional id is kept, in milliseconds."
    ),
    key("transaction.state.log.num.partitions", INT, 50, HIGH, Range(1)).means(
        "How many partitions the topic of transaction states gets. Must not change once it exists."
    ),
    key("transaction.state.log.replication.factor", SHORT, 3, HIGH, Range(1)).means(
        "How many replicas the topic of transaction states gets when it is created."
    ),
    key("transaction.state.log.min.isr", INT, 2, HIGH, Range(1)).means(
        "`min.insync.replicas` of the topic of transaction states."
    ),
    key("transaction.state.log.segment.bytes", INT, 104_857_600, HIGH, Range(1)).means(
        "Segment size of the topic of transaction states, in bytes."
    ),
    key("transaction.state.log.load.buffer.size", INT, 5_242_880, HIGH, Range(1), inert=True).means(
        "Read size while transaction states are loaded. No effect in Headrace: partitions are loaded in "
        "chunks of a size of its own."
    ),
    key("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10000, LOW, Range(1)).means(
        "Time between two looks for transactions that timed out, in milliseconds."
    ),
    key("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, LOW, Range(1)).means(
        "Time between two looks for expired transactional ids, in milliseconds."
    ),
    key("transaction.partition.verification.enable", BOOLEAN, True, LOW, update=CLUSTER_WIDE).means(
        "Whether a partition asks the coordinator before it takes the first transactional write of a "
        "producer."
    ),
    key("transaction.two.phase.commit.enable", BOOLEAN, False, LOW).means(
        "Whether producers may prepare a transaction that only they, never a time-out, end."
    ),
    key("producer.id.expiration.ms", INT, 86_400_000, LOW, Range(1), CLUSTER_WIDE).means(
        "How long a partition remembers a producer that has written nothing, in milliseconds."
    ),
    key("producer.id.expiration.check.interval.ms", INT, 600_000, LOW, Range(1), internal=True).means(
        "Time between two looks for expired producers, in milliseconds."
    ),
    key("add.partitions.to.txn.retry.backoff.ms", INT, 20, HIGH, Range(1)).means(
        "Pause before adding partitions to a transaction is tried again, in milliseconds."
    ),
    key("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, HIGH, Range(0)).means(
        "How long adding partitions to a transaction is tried again, in milliseconds, before the client "
        "is told."
    ),
)
