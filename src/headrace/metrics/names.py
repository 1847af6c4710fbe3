"""Names: those of Kafka's MBeans, as the usual configuration of the JMX exporter writes them."""

import re

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]+")


def mbean_name(domain: str, kind: str, name: str) -> str:
    """The name for an attribute of an MBean, in lower case.

    `kafka.server`, `BrokerTopicMetrics`, `MessagesInPerSec` is `kafka_server_brokertopicmetrics_messagesin`.
    """
    name = name.removesuffix("PerSec")
    return _NOT_IN_NAMES.sub("_", f"{domain}_{kind}_{name}").lower()


def check_name(name: str) -> None:
    """Refuse what Prometheus would not take as the name of a metric."""
    if not _METRIC.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a metric")


def check_label(name: str) -> None:
    """Refuse what Prometheus would not take as the name of a label."""
    if not _LABEL.fullmatch(name) or name.startswith("__") or name in ("le", "quantile"):
        raise ValueError(f"{name!r} is not a name for a label")
