"""The groups of a shard by their ids, whatever their kind."""

from collections.abc import Iterator

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.group import Group


class GroupRegistry:
    """All groups of a shard."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(tuple(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def find(self, group_id: str) -> Group | None:
        """A group of any kind, if there is one."""
        return self._groups.get(group_id)

    def get(self, group_id: str) -> Group:
        """A group of any kind; GROUP_ID_NOT_FOUND if there is none."""
        group = self._groups.get(group_id)
        if group is None:
            raise not_found(f"Group {group_id} not found.")
        return group

    def classic(self, group_id: str) -> ClassicGroup:
        """A classic group; GROUP_ID_NOT_FOUND if there is none, or one of another kind."""
        group = self.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise not_found(f"Group {group_id} is not a classic group.")
        return group

    def find_classic(self, group_id: str) -> ClassicGroup | None:
        """A classic group, if there is one."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        """An empty classic group, which replaces whatever was there."""
        group = self._groups[group_id] = ClassicGroup(group_id, now_ms)
        return group

    def put(self, group: Group) -> None:
        """Take a group in, in place of what had its id."""
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> Group | None:
        """Forget a group."""
        return self._groups.pop(group_id, None)


def not_found(message: str) -> KafkaError:
    """There is no such group."""
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
