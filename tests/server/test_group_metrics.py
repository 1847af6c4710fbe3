"""Metrics of groups are there under Kafka's names, and tell what there is."""

import re

from headrace.api.services import Services
from headrace.metrics.exposition import render
from headrace.metrics.registry import Registry
from headrace.server.group_metrics import bind_groups
from tests.support_groups import GroupContext, serving
from tests.support_log import on_loop


def page_of(context: GroupContext) -> dict[str, float]:
    """Every sample by its name and labels."""
    services: Services = context.node.services
    services.groups = context.coordinator
    registry = Registry()
    bind_groups(registry, services)
    text = "".join(render(registry))
    return {name: float(value) for name, value in re.findall(r"(?m)^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text)}


@on_loop
async def test_groups_offsets_and_rebalances_are_told() -> None:
    async with serving() as context:
        (member,) = context.stable()
        context.commit({0: 1, 1: 2}, member_id=member.member_id, generation=1)
        context.commit({0: 1}, group_id="simple")
        context.begin_join(member.member_id)
        context.new_member(group_id="new")
        page = page_of(context)
    manager = "kafka_coordinator_group_groupmetadatamanager"
    assert page[f"{manager}_numgroups"] == 3
    assert page[f"{manager}_numoffsets"] == 3
    assert page[f"{manager}_numgroupspreparingrebalance"] == 1
    assert page[f"{manager}_numgroupscompletingrebalance"] == 1
    assert page[f"{manager}_numgroupsempty"] == 1
    metrics = "kafka_server_group_coordinator_metrics"
    assert page[f'{metrics}_group_count{{protocol="classic"}}'] == 3
    assert page[f'{metrics}_num_partitions{{state="active"}}'] == 1
    assert page[f"{metrics}_offset_commit_count_total"] == 3
    assert page[f"{metrics}_group_completed_rebalance_count_total"] == 1
