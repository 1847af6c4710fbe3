"""Per-group configuration: what applies to one group now, from the committed metadata."""

from collections.abc import Callable

from headrace.config.alteration import ResourceType
from headrace.config.group import bounded_group_config
from headrace.config.node import NodeConfig
from headrace.config.values import ConfigValue
from headrace.metadata.delta import ConfigResource, MetadataDelta
from headrace.metadata.image import MetadataImage


class GroupConfigs:
    """Effective configurations by group, worked out on first use and kept until something changes."""

    __slots__ = ("_broker", "_effective", "_image", "_made_for")

    def __init__(self, image: MetadataImage, broker: Callable[[], NodeConfig]) -> None:
        self._image = image
        self._broker = broker
        self._effective: dict[str, dict[str, ConfigValue]] = {}
        self._made_for: NodeConfig | None = None

    def integer(self, group_id: str, key: str) -> int:
        """A number that a group is configured with, within the broker's bounds."""
        value = self.of(group_id)[key]
        assert isinstance(value, int)
        return value

    def of(self, group_id: str) -> dict[str, ConfigValue]:
        """Every key's value for a group."""
        broker = self._broker()
        if broker is not self._made_for:
            self._effective.clear()
            self._made_for = broker
        overrides = self._image.configs.get(ConfigResource(ResourceType.GROUP, group_id))
        # Groups that set nothing share what the broker says.
        name = group_id if overrides else ""
        found = self._effective.get(name)
        if found is None:
            found = self._effective[name] = bounded_group_config(overrides or {}, broker)
        return found

    def on_change(self, delta: MetadataDelta) -> None:
        """Forget what was worked out for groups that are configured otherwise now."""
        for resource in delta.configs:
            if resource.type == ResourceType.GROUP:
                self._effective.pop(resource.name, None)
