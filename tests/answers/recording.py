"""Recorded answers in files, one exchange a line, and what differs between them and the answers of a run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from tests.answers.catalogue import Scenario
from tests.answers.session import Exchange, Session, Target

RECORDINGS = Path(__file__).resolve().parent.parent / "fixtures" / "answers"
SETTINGS = RECORDINGS / "settings.json"
_SHOWN_CHARACTERS = 300


def recording_file(family: str) -> Path:
    """Where a family's answers are kept."""
    return RECORDINGS / f"{family}.json"


def recorded_properties() -> dict[str, str]:
    """The settings of the broker whose answers were recorded."""
    properties: dict[str, str] = json.loads(SETTINGS.read_text(encoding="utf-8"))["properties"]
    return properties


def store_settings(kafka: str, properties: dict[str, str]) -> None:
    """Keep with the answers whose they are."""
    text = json.dumps({"kafka": kafka, "properties": properties}, indent=1)
    SETTINGS.write_text(text + "\n", encoding="utf-8")


def load_family(family: str) -> dict[str, list[Exchange]]:
    """A family's recorded exchanges by scenario."""
    path = recording_file(family)
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: [Exchange(**each) for each in exchanges] for name, exchanges in recorded.items()}


def store_family(family: str, recorded: dict[str, list[Exchange]]) -> None:
    """Write a family's exchanges, in a form that shows changes line by line."""
    parts = []
    for name, exchanges in recorded.items():
        lines = [json.dumps(asdict(each), ensure_ascii=False, separators=(",", ":")) for each in exchanges]
        parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]")
    recording_file(family).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def play(scenario: Scenario, target: Target) -> tuple[list[Exchange], Exception | None]:
    """Run a scenario and return its exchanges, with the error that ended it early, if one did."""
    session = Session(target)
    try:
        scenario.run(session)
    except (AssertionError, AttributeError, HeadraceError, IndexError, OSError) as failure:
        return session.exchanges, failure
    finally:
        session.close()
    return session.exchanges, None


def differences(recorded: list[Exchange], seen: list[Exchange]) -> list[str]:
    """Every field that differs, with the exchange it is in. JSON has no tuples, so both go through it."""
    found = []
    for expected, actual in zip(recorded, seen, strict=False):
        title = f"{expected.api} v{expected.version}, {expected.about}"
        plain_expected, plain_actual = (json.loads(json.dumps(asdict(each))) for each in (expected, actual))
        found += [f"{title}: {each}" for each in _differences("", plain_expected, plain_actual)]
    if len(recorded) != len(seen):
        found.append(f"{len(recorded)} exchanges are recorded, {len(seen)} were made")
    return found


def _differences(path: str, expected: Any, actual: Any) -> list[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = []
        for key in expected | actual:
            found += _differences(f"{path}.{key}", expected.get(key, "absent"), actual.get(key, "absent"))
        return found
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            each
            for at, pair in enumerate(zip(expected, actual, strict=True))
            for each in _differences(f"{path}[{at}]", *pair)
        ]
    if type(expected) is type(actual) and expected == actual:
        return []
    return [f"{path.lstrip('.')}: Kafka {_shown(expected)}, here {_shown(actual)}"]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
