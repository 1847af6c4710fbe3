"""The configuration that the answer to a creation tells: every key, its text, and where that comes from.

Texts are told as they were given, not as they are understood, and a broker's key in hours counts for a
topic's in milliseconds; DescribeConfigs goes by other rules (`headrace.config.describe`)."""

from collections.abc import Mapping

from headrace.config.describe import Source
from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.synonyms import TOPIC_SYNONYMS
from headrace.config.values import render
from headrace.metadata.control_view import ControlView
from headrace.protocol.messages.create_topics import CreatableTopicConfigs


def creation_configs(view: ControlView, texts: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """Every key of a topic with these texts, by name; internal keys only where they were set."""
    image = view.image
    layers: tuple[tuple[Source, Mapping[str, str]], ...] = (
        (Source.DYNAMIC_BROKER, image.broker_config(view.node_id)),
        (Source.DYNAMIC_DEFAULT_BROKER, image.broker_config(None)),
        (Source.STATIC_BROKER, view.config.texts),
    )
    told = []
    for name in sorted(TOPIC_KEYS):
        key = TOPIC_KEYS[name]
        if key.internal and name not in texts:
            continue
        value: str | None
        if name in texts:
            value, source = texts[name], Source.TOPIC
        else:
            value, source = _inherited(name, layers) or (render(key.default), Source.DEFAULT)
        told.append(
            CreatableTopicConfigs(
                name=name,
                value=None if key.sensitive else value,
                config_source=source,
                is_sensitive=key.sensitive,
            )
        )
    return told


def _inherited(
    name: str, layers: tuple[tuple[Source, Mapping[str, str]], ...]
) -> tuple[str | None, Source] | None:
    for source, texts in layers:
        for synonym in TOPIC_SYNONYMS.get(name, ()):
            if synonym.name in texts:
                text = texts[synonym.name]
                return (str(int(text) * synonym.factor) if synonym.factor != 1 else text), source
    return None
