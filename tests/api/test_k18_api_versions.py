"""ApiVersions: what is advertised is what the table has, and its ranges are Kafka's."""

import json
from typing import Any

import pytest

from headrace.api.k18_api_versions import API
from headrace.api.table import BROKER_APIS, CONTROLLER_APIS
from headrace.errors import ErrorCode
from headrace.protocol.disk_records.cluster_metadata import FeatureLevelRecord
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support_admin import ask, broker_record, image_of, services_of, spoken_versions
from tests.support_config import FACTS

NAMED = ApiVersionsRequest(client_software_name="some-client", client_software_version="1.2.3")


def facts(kind: str) -> Any:
    return json.loads((FACTS / f"api_versions_{kind}.json").read_text())


def versions(version: int, request: ApiVersionsRequest = NAMED, **where: Any) -> ApiVersionsResponse:
    finalized = facts("broker")["features"]["finalized_min_max"]
    features = [FeatureLevelRecord(name=name, feature_level=high) for name, (_, high) in finalized.items()]
    services, _ = services_of(image_of(*features, broker_record()))
    return ask(services, API, request, ApiVersionsResponse, version, **where)


@pytest.mark.parametrize("version", spoken_versions(API))
@pytest.mark.parametrize(
    ("listener", "kind", "apis"),
    [("PLAINTEXT", "broker", BROKER_APIS), ("CONTROLLER", "controller", CONTROLLER_APIS)],
)
def test_what_is_advertised_is_the_table_with_kafkas_ranges(
    version: int, listener: str, kind: str, apis: Any
) -> None:
    reply = versions(version, listener=listener)
    told = {each.api_key: [each.min_version, each.max_version] for each in reply.api_keys}
    assert list(told) == [api.key for api in apis]
    known = {int(key): value for key, value in facts(kind)["api_versions"].items()}
    assert told == {key: known[key] for key in told}


def test_every_supported_feature_is_told_since_version_4() -> None:
    told = {each.name: [each.min_version, each.max_version] for each in versions(4).supported_features}
    assert told == facts("broker")["features"]["supported"]


def test_features_that_can_be_off_are_kept_from_older_clients() -> None:
    assert [each.name for each in versions(3).supported_features] == ["metadata.version"]


def test_finalized_features_are_told_with_their_epoch() -> None:
    reply = versions(3)
    told = {each.name: [each.min_version_level, each.max_version_level] for each in reply.finalized_features}
    assert told == facts("broker")["features"]["finalized_min_max"]
    assert reply.finalized_features_epoch == len(told)


def test_the_quorums_own_version_is_told_where_it_is_on() -> None:
    services, controller = services_of(image_of(broker_record()))
    controller.kraft_version = 1
    reply = ask(services, API, NAMED, ApiVersionsResponse, 4)
    assert [(each.name, each.max_version_level) for each in reply.finalized_features] == [
        ("kraft.version", 1)
    ]


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a ", "1"), ("a", "1_0"), ("é", "1"), ("a", "1.")],
)
def test_odd_names_of_software_are_refused(name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    reply = versions(3, request)
    assert (reply.error_code, reply.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_clients_before_version_3_have_no_name_to_check() -> None:
    assert versions(2, ApiVersionsRequest()).error_code == 0
