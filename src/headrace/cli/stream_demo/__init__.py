"""The live demonstration: a node, a generator of events, and a windowed aggregation on local Spark."""
