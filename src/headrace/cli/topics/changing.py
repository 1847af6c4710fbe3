"""`headrace topic create`, `alter` and `delete`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.cli.client_options import OutputFormat
from headrace.cli.client_session import FAILED, complain
from headrace.cli.topics.printing import id_text, print_json, print_line
from headrace.client.admin.configs import (
    ConfigChange,
    ConfigResource,
    Operation,
    ResourceKind,
    alter_configs,
)
from headrace.client.admin.topic_descriptions import describe_topics
from headrace.client.admin.topics import (
    MorePartitions,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topics,
)
from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused
from headrace.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Creates one topic."""

    topic: NewTopic
    output: OutputFormat
    if_not_exists: bool = False
    validate_only: bool = False

    async def __call__(self, cluster: Cluster) -> None:
        name = self.topic.name
        outcomes = await create_topics(cluster, [self.topic], validate_only=self.validate_only)
        refusal = outcomes.refused.get(name)
        if refusal is not None and refusal.code == ErrorCode.TOPIC_ALREADY_EXISTS and self.if_not_exists:
            self._print_existing(name)
            return
        created = outcomes.all()[name]
        if self.output is OutputFormat.JSON:
            print_json(
                {
                    "name": name,
                    "id": None if self.validate_only else id_text(created.id),
                    "partitions": created.partitions,
                    "replication_factor": created.replication_factor,
                    "created": not self.validate_only,
                }
            )
        elif self.validate_only:
            print_line(f"Topic {name} can be created.")
        else:
            print_line(f"Created topic {name}.")

    def _print_existing(self, name: str) -> None:
        if self.output is OutputFormat.JSON:
            print_json({"name": name, "created": False})
        else:
            print_line(f"Topic {name} exists already.")


@dataclass(frozen=True, slots=True)
class AlterTopic:
    """Changes one topic. Configurations that are None go back to their default."""

    name: str
    partitions: int | None
    configs: Mapping[str, str | None]
    output: OutputFormat
    validate_only: bool = False

    async def __call__(self, cluster: Cluster) -> None:
        (await describe_topics(cluster, [self.name])).all()
        await self._validate(cluster)
        if not self.validate_only:
            await self._alter_configs(cluster, validate_only=False)
            await self._add_partitions(cluster, validate_only=False)
        if self.output is OutputFormat.JSON:
            print_json({"name": self.name, "altered": not self.validate_only})
        elif self.validate_only:
            print_line(f"Topic {self.name} can be altered so.")
        else:
            print_line(f"Altered topic {self.name}.")

    async def _validate(self, cluster: Cluster) -> None:
        """Two requests make the change: neither is sent unless both will be taken."""
        if self.validate_only or (self.partitions is not None and self.configs):
            await self._alter_configs(cluster, validate_only=True)
            await self._add_partitions(cluster, validate_only=True)

    async def _alter_configs(self, cluster: Cluster, *, validate_only: bool) -> None:
        if not self.configs:
            return
        changes = [
            ConfigChange(name, Operation.DELETE if value is None else Operation.SET, value)
            for name, value in self.configs.items()
        ]
        resource = ConfigResource(ResourceKind.TOPIC, self.name)
        (await alter_configs(cluster, {resource: changes}, validate_only=validate_only)).all()

    async def _add_partitions(self, cluster: Cluster, *, validate_only: bool) -> None:
        if self.partitions is not None:
            wanted = {self.name: MorePartitions(self.partitions)}
            (await add_partitions(cluster, wanted, validate_only=validate_only)).all()


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Deletes topics; one that can't be deleted does not keep the others from it."""

    names: Sequence[str]
    output: OutputFormat
    if_exists: bool = False

    async def __call__(self, cluster: Cluster) -> int | None:
        outcomes = await delete_topics(cluster, self.names)
        failures = {name: each for name, each in outcomes.refused.items() if not self._is_fine(each)}
        if self.output is OutputFormat.JSON:
            print_json(
                [{"name": name, "deleted": name in outcomes.done} for name in dict.fromkeys(self.names)]
            )
        else:
            for name in outcomes.done:
                print_line(f"Deleted topic {name}.")
        for refusal in failures.values():
            complain(str(refusal))
        return FAILED if failures else None

    def _is_fine(self, refusal: BrokerRefused) -> bool:
        return self.if_exists and refusal.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
