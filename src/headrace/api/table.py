"""The one table: every API this node speaks, by kind of listener.

The dispatch, the ApiVersions reply and the coverage page of the documentation derive from it; nothing is
advertised that is not in it.
"""

from typing import Final

from headrace.api import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k18_api_versions,
    k19_create_topics,
    k20_delete_topics,
    k21_delete_records,
    k22_init_producer_id,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k32_describe_configs,
    k33_alter_configs,
    k34_alter_replica_log_dirs,
    k35_describe_log_dirs,
    k37_create_partitions,
    k42_delete_groups,
    k44_incremental_alter_configs,
    k47_offset_delete,
    k55_describe_quorum,
    k57_update_features,
    k60_describe_cluster,
    k61_describe_producers,
    k64_unregister_broker,
    k65_describe_transactions,
    k66_list_transactions,
    k68_consumer_group_heartbeat,
    k69_consumer_group_describe,
    k74_list_config_resources,
    k75_describe_topic_partitions,
)
from headrace.api.services import Api

BROKER_APIS: Final[tuple[Api, ...]] = (
    k00_produce.API,
    k01_fetch.API,
    k02_list_offsets.API,
    k03_metadata.API,
    k08_offset_commit.API,
    k09_offset_fetch.API,
    k10_find_coordinator.API,
    k11_join_group.API,
    k12_heartbeat.API,
    k13_leave_group.API,
    k14_sync_group.API,
    k15_describe_groups.API,
    k16_list_groups.API,
    k18_api_versions.API,
    k19_create_topics.API,
    k20_delete_topics.API,
    k21_delete_records.API,
    k22_init_producer_id.API,
    k23_offset_for_leader_epoch.API,
    k24_add_partitions_to_txn.API,
    k25_add_offsets_to_txn.API,
    k26_end_txn.API,
    k27_write_txn_markers.API,
    k28_txn_offset_commit.API,
    k32_describe_configs.API,
    k33_alter_configs.API,
    k34_alter_replica_log_dirs.API,
    k35_describe_log_dirs.API,
    k37_create_partitions.API,
    k42_delete_groups.API,
    k44_incremental_alter_configs.API,
    k47_offset_delete.API,
    k55_describe_quorum.API,
    k57_update_features.API,
    k60_describe_cluster.API,
    k61_describe_producers.API,
    k64_unregister_broker.API,
    k65_describe_transactions.API,
    k66_list_transactions.API,
    k68_consumer_group_heartbeat.API,
    k69_consumer_group_describe.API,
    k74_list_config_resources.API,
    k75_describe_topic_partitions.API,
)
"""What clients and brokers may ask, in the order of keys."""

CONTROLLER_APIS: Final[tuple[Api, ...]] = (
    k18_api_versions.API,
    k19_create_topics.API,
    k20_delete_topics.API,
    k32_describe_configs.API,
    k33_alter_configs.API,
    k37_create_partitions.API,
    k44_incremental_alter_configs.API,
    k55_describe_quorum.API,
    k57_update_features.API,
    k60_describe_cluster.API,
    k64_unregister_broker.API,
)
"""What may be asked on a controller's listener, in the order of keys."""


def apis_of(is_controller: bool) -> tuple[Api, ...]:
    """The APIs of a controller's or of a broker's listeners."""
    return CONTROLLER_APIS if is_controller else BROKER_APIS
