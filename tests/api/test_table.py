"""The one table: in order, without doubles, with Kafka's ranges, and the documentation in step with it."""

import pytest

from headrace.api.services import Api
from headrace.api.table import BROKER_APIS, CONTROLLER_APIS
from headrace.protocol.apis import APIS
from tools.api_coverage import PAGE, page

ALL = {api.key: api for api in (*BROKER_APIS, *CONTROLLER_APIS)}.values()


@pytest.mark.parametrize("apis", [BROKER_APIS, CONTROLLER_APIS], ids=["broker", "controller"])
def test_apis_are_in_the_order_of_their_keys(apis: tuple[Api, ...]) -> None:
    keys = [api.key for api in apis]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("api", ALL, ids=lambda api: api.name)
def test_an_api_has_kafkas_name_versions_and_messages(api: Api) -> None:
    kafka = APIS[api.key]
    assert api.name == kafka.name
    assert api.versions == (kafka.version_min, kafka.stable_version_max)
    assert (api.request, api.response) == (kafka.request_class(), kafka.response_class())
    assert "broker" in kafka.listeners or api not in BROKER_APIS
    assert "controller" in kafka.listeners or api not in CONTROLLER_APIS


@pytest.mark.parametrize("api", ALL, ids=lambda api: api.name)
def test_an_api_can_tell_that_a_request_failed(api: Api) -> None:
    assert api.error_response is not None


def test_the_coverage_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tools.api_coverage"
