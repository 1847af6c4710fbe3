"""IncrementalAlterConfigs: set, delete, append to or subtract from single keys of a resource.

A broker changes its loggers itself, checks what concerns its own configuration, and leaves the rest to the
controller; each resource has its own result.
"""

from typing import Final

from headrace.api import broker_loggers
from headrace.api.config_changes import (
    DONE,
    Outcome,
    check_broker_change,
    check_broker_name,
    preprocessed,
    reassembled,
    refusal,
    remaining,
    unknown_type,
)
from headrace.api.context import RequestContext
from headrace.api.error_texts import told_text
from headrace.api.services import Api, Services
from headrace.config.alteration import Change, Operation, ResourceType, altered_on_broker, check_changes
from headrace.config.dynamic import usable
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.delta import ConfigResource
from headrace.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_OPERATIONS: Final = frozenset(Operation)
_LEFT_TO_CONTROLLER: Final = (ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


async def handle(
    services: Services, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    if context.listener in services.config.controller_listener_names:
        return await _on_controller(services, request)
    resources = request.resources

    def process(resource: AlterConfigsResource) -> bool:
        return _preprocess(services, resource, validate_only=request.validate_only)

    outcomes = preprocessed(resources, process, "the incremental change of the configuration")
    results: list[AlterConfigsResourceResponse] = []
    if rest := remaining(resources, outcomes):
        asked = IncrementalAlterConfigsRequest(resources=rest, validate_only=request.validate_only)
        results = (await services.controller.incremental_alter_configs(asked)).responses
    decided = reassembled(resources, outcomes, results)
    return IncrementalAlterConfigsResponse(
        responses=[
            _result(r.resource_type, r.resource_name, o) for r, o in zip(resources, decided, strict=True)
        ]
    )


def _preprocess(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> bool:
    """Refuse a resource, or return whether nothing is left to do for it."""
    changes = _changes(resource)
    check_changes(changes)
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.BROKER_LOGGER:
        broker_loggers.alter(name, services.config.node_id, changes, validate_only=validate_only)
        return True
    if kind == ResourceType.BROKER:
        check_broker_name(services, name)
        current = services.image.config(ConfigResource(ResourceType.BROKER, name))
        proposed = altered_on_broker(usable(current, per_broker=bool(name)), changes)
        check_broker_change(services, name, proposed)
    elif kind not in _LEFT_TO_CONTROLLER:
        raise unknown_type(kind)
    elif any(change.operation not in _OPERATIONS for change in changes):
        # Kafka's controller stumbles over what it does not know, and that is what clients are told.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return False


def _changes(resource: AlterConfigsResource) -> list[Change]:
    return [Change(each.name, each.config_operation, each.value) for each in resource.configs]


async def _on_controller(
    services: Services, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """A controller does not look at brokers' values, as it does not know how each of them is set up."""
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    asked = IncrementalAlterConfigsRequest(
        resources=[each for each in request.resources if each.resource_type != ResourceType.BROKER_LOGGER],
        validate_only=request.validate_only,
    )
    response = await services.controller.incremental_alter_configs(asked)
    for each in loggers:
        outcome = _alter_loggers(services, each, validate_only=request.validate_only)
        response.responses.append(_result(each.resource_type, each.resource_name, outcome))
    return response


def _alter_loggers(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> Outcome:
    try:
        broker_loggers.alter(
            resource.resource_name,
            services.config.node_id,
            _changes(resource),
            validate_only=validate_only,
        )
    except KafkaError as error:
        return Outcome(error.code, told_text(error))
    return DONE


def _result(kind: int, name: str, outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=kind, resource_name=name, error_code=outcome.code, error_message=outcome.message
    )


def error_response(
    request: IncrementalAlterConfigsRequest, version: int, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    outcome = refusal(error)
    return IncrementalAlterConfigsResponse(
        responses=[_result(each.resource_type, each.resource_name, outcome) for each in request.resources]
    )


API: Final = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=(0, 1),
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
    handle=handle,
    error_response=error_response,
)
