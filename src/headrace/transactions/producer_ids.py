"""How a decision says that it takes a producer id which nobody has handed in."""


class ProducerIdNeeded(Exception):
    """Decide again, with a new producer id: fetching one may take a while, which a decision must not."""
