"""The reasons why a node does not start, in one line that says what to do."""

from headrace.errors import HeadraceError


class StartRefused(HeadraceError):
    """The node can't start as it is set up. The message is for whoever started it."""
