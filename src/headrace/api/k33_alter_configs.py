"""AlterConfigs: replace all that is set for a resource, as old clients do.

A broker checks what concerns itself and leaves the rest to the controller; each resource has its own result.
"""

from typing import Final

from headrace.api.config_changes import (
    Outcome,
    check_broker_change,
    check_broker_name,
    preprocessed,
    reassembled,
    remaining,
    unknown_type,
)
from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.config.alteration import Change, Operation, ResourceType, check_changes
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

_LEFT_TO_CONTROLLER: Final = (ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


async def handle(
    services: Services, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    if context.listener in services.config.controller_listener_names:
        return await _on_controller(services, request)
    resources = request.resources

    def process(resource: AlterConfigsResource) -> bool:
        _check(services, resource)
        return False

    outcomes = preprocessed(resources, process, "the change of the configuration")
    results: list[AlterConfigsResourceResponse] = []
    if rest := remaining(resources, outcomes):
        asked = AlterConfigsRequest(resources=rest, validate_only=request.validate_only)
        results = (await services.controller.alter_configs(asked)).responses
    decided = reassembled(resources, outcomes, results)
    return AlterConfigsResponse(
        responses=[
            _result(r.resource_type, r.resource_name, o) for r, o in zip(resources, decided, strict=True)
        ]
    )


def _check(services: Services, resource: AlterConfigsResource) -> None:
    check_changes([Change(each.name, Operation.SET, each.value) for each in resource.configs])
    if resource.resource_type == ResourceType.BROKER:
        check_broker_name(services, resource.resource_name)
        proposed = {each.name: each.value or "" for each in resource.configs}
        check_broker_change(services, resource.resource_name, proposed)
    elif resource.resource_type not in _LEFT_TO_CONTROLLER:
        raise unknown_type(resource.resource_type)


async def _on_controller(services: Services, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """A controller does not look at brokers' values, as it does not know how each of them is set up."""
    loggers = [each for each in request.resources if each.resource_type == ResourceType.BROKER_LOGGER]
    asked = AlterConfigsRequest(
        resources=[each for each in request.resources if each.resource_type != ResourceType.BROKER_LOGGER],
        validate_only=request.validate_only,
    )
    response = await services.controller.alter_configs(asked)
    refused = Outcome(ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")
    response.responses += [_result(each.resource_type, each.resource_name, refused) for each in loggers]
    return response


def _result(kind: int, name: str, outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        resource_type=kind, resource_name=name, error_code=outcome.code, error_message=outcome.message
    )


def error_response(request: AlterConfigsRequest, version: int, error: KafkaError) -> AlterConfigsResponse:
    outcome = Outcome(error.code, error.message or None)
    return AlterConfigsResponse(
        responses=[_result(each.resource_type, each.resource_name, outcome) for each in request.resources]
    )


API: Final = Api(
    key=33,
    name="AlterConfigs",
    versions=(0, 2),
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
    handle=handle,
    error_response=error_response,
)
