"""Changes of configurations as a broker sees them before it passes them on to the controller.

Each resource has an outcome of its own: refused here, done here (loggers), or left to the controller. The
rules hold for AlterConfigs and IncrementalAlterConfigs alike.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from headrace.api.dynamic_config import run_time_texts, static_config
from headrace.api.node_ids import node_id_of
from headrace.api.services import Services
from headrace.config.dynamic import validate_broker_change
from headrace.errors import ErrorCode, KafkaError

logger: Final = logging.getLogger("headrace.api")


class Resource(Protocol):
    """What both requests call a resource."""

    resource_type: int
    resource_name: str


class Outcome(NamedTuple):
    """How the change of a resource ended."""

    code: int
    message: str | None


R = TypeVar("R", bound=Resource)
DONE: Final = Outcome(ErrorCode.NONE, None)
_REPEATED: Final = Outcome(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def refusal(error: KafkaError) -> Outcome:
    """The outcome of a change that was refused."""
    return Outcome(error.code, error.message or None)


def preprocessed(resources: Sequence[R], process: Callable[[R], bool], failure: str) -> dict[int, Outcome]:
    """The outcomes that are known before the controller is asked, by the resource's place in the request.

    `process` refuses a resource, returns True when it is done with it, and False to leave it to the
    controller. A failure that is no refusal is logged with the words of `failure`."""
    outcomes: dict[int, Outcome] = {}
    counts = Counter((each.resource_type, each.resource_name) for each in resources)
    for index, resource in enumerate(resources):
        if counts[resource.resource_type, resource.resource_name] > 1:
            outcomes[index] = _REPEATED
            continue
        try:
            if process(resource):
                outcomes[index] = DONE
        except KafkaError as error:
            outcomes[index] = refusal(error)
        except Exception:
            logger.exception("%s of %s failed", failure, resource)
            outcomes[index] = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return outcomes


def remaining(resources: Sequence[R], outcomes: Mapping[int, Outcome]) -> list[R]:
    """The resources that the controller has to be asked about."""
    return [resource for index, resource in enumerate(resources) if index not in outcomes]


class Result(Protocol):
    """What both responses say about a resource."""

    resource_type: int
    resource_name: str
    error_code: int
    error_message: str | None


def reassembled(
    resources: Sequence[Resource], outcomes: Mapping[int, Outcome], results: Iterable[Result]
) -> list[Outcome]:
    """The outcome of every resource of a request, in its order."""
    decided = {
        (each.resource_type, each.resource_name): Outcome(each.error_code, each.error_message)
        for each in results
    }
    missing = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return [
        outcomes[index]
        if index in outcomes
        else decided.get((resource.resource_type, resource.resource_name), missing)
        for index, resource in enumerate(resources)
    ]


def check_broker_change(services: Services, name: str, proposed: Mapping[str, str]) -> None:
    """Refuse texts for this broker, or with an empty name for all, that this one could not run with."""
    cluster, own = run_time_texts(services)
    validate_broker_change(static_config(services), cluster, own, proposed, per_broker=bool(name))


def check_broker_name(services: Services, name: str) -> None:
    """A broker changes its own configuration, or that of all (an empty name)."""
    if not name:
        return
    asked = node_id_of(name)
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    own = services.config.node_id
    if asked != own:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {own}, but received {name}"
        )


def unknown_type(resource_type: int) -> KafkaError:
    """The refusal of a resource of a type that can't be changed this way."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
