"""Settings of single groups: what applies to each, within the bounds of the broker, at once."""

from headrace.config.alteration import ResourceType
from headrace.config.node import NodeConfig
from headrace.groups.group_configs import GroupConfigs
from headrace.metadata.delta import ConfigResource, MetadataDelta
from headrace.metadata.image import MetadataImage
from tests.support_config import node

KEY = "consumer.session.timeout.ms"


class Settings:
    """Configurations that a test changes."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.broker: NodeConfig = node({})
        self.configs = GroupConfigs(self.image, lambda: self.broker)

    def set(self, group: str, value: str | None) -> None:
        resource = ConfigResource(ResourceType.GROUP, group)
        if value is None:
            self.image.configs.pop(resource, None)
        else:
            self.image.configs[resource] = {KEY: value}
        self.configs.on_change(MetadataDelta(configs={resource}))


def test_a_group_without_settings_has_those_of_the_broker() -> None:
    settings = Settings()
    assert settings.configs.integer("any", KEY) == 45_000
    settings.broker = node({"group.consumer.session.timeout.ms": "50000"})
    assert settings.configs.integer("any", KEY) == 50_000


def test_a_change_applies_at_once_and_to_that_group_alone() -> None:
    settings = Settings()
    settings.set("one", "55000")
    assert settings.configs.integer("one", KEY) == 55_000
    assert settings.configs.integer("other", KEY) == 45_000
    settings.set("one", "58000")
    assert settings.configs.integer("one", KEY) == 58_000
    settings.set("one", None)
    assert settings.configs.integer("one", KEY) == 45_000


def test_the_bounds_of_the_broker_hold_for_what_was_set_before() -> None:
    settings = Settings()
    settings.set("one", "59000")
    settings.broker = node({"group.consumer.max.session.timeout.ms": "50000"})
    assert settings.configs.integer("one", KEY) == 50_000
