"""Writes docs/api-coverage.md from the API table, beside what Kafka has.

Run it as `python -m tools.api_coverage` after a change of the table; a test compares page and table.
"""

from pathlib import Path

from headrace.api.services import Api
from headrace.api.table import BROKER_APIS, CONTROLLER_APIS
from headrace.protocol.apis import APIS

PAGE = Path(__file__).parents[1] / "docs" / "api-coverage.md"
_START = """# API coverage

The APIs of Apache Kafka 4.3.1 and the versions of them that Headrace speaks, by kind of listener. What is not
here is not advertised to clients. The page is made from the table that requests are dispatched by.

| key | API | Kafka | broker | controller |
| ---: | --- | --- | --- | --- |
"""


def main() -> None:
    """Replace the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} is up to date")


def page() -> str:
    """The page as the table has it now."""
    tables = [{api.key: api for api in apis} for apis in (BROKER_APIS, CONTROLLER_APIS)]
    lines = []
    for api in APIS.values():
        if api.is_withdrawn or not {"broker", "controller"} & set(api.listeners):
            continue
        kafka = _range(api.version_min, api.stable_version_max)
        cells = [_cell(table.get(api.key)) for table in tables]
        lines.append(f"| {api.key} | {api.name} | {kafka} | {cells[0]} | {cells[1]} |\n")
    return _START + "".join(lines)


def _cell(api: Api | None) -> str:
    return "" if api is None else _range(*api.versions)


def _range(low: int, high: int) -> str:
    if high < low:
        return "none yet"
    return str(low) if low == high else f"{low} to {high}"


if __name__ == "__main__":
    main()
