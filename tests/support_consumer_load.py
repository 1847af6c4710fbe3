"""Members of consumer groups under load: confluent-kafka with the new protocol."""

import sys
import threading
from typing import Any

from tests.support_group_load import GROUP, TOPIC, Member, Notes, PrintedNotes

#: What a commit that comes too late is answered: the epoch is not the member's, or it is no member.
LATE = (22, 25, 27, 113, -168)


def settings_of(bootstrap: str, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
    } | {name.replace("_", "."): value for name, value in settings.items()}


def consumer_member(bootstrap: str, notes: Notes, topics: str = TOPIC, **settings: Any) -> Member:
    """confluent-kafka, speaking the new protocol."""

    from confluent_kafka import Consumer, KafkaException

    def run(stopping: threading.Event) -> None:
        consumer = Consumer(settings_of(bootstrap, **settings))
        consumer.subscribe([topics])
        try:
            while not stopping.is_set():
                messages = consumer.consume(50, 0.1)
                for message in messages:
                    if message.error() is None:
                        notes.add(message.partition(), message.offset())
                if messages:
                    try:
                        consumer.commit(asynchronous=False)
                    except KafkaException as error:
                        if error.args[0].code() not in LATE:
                            raise
        finally:
            consumer.close()

    return Member(run)


if __name__ == "__main__":
    consumer_member(sys.argv[1], PrintedNotes())
