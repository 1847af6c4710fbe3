"""The runtime under group and transaction coordinators: loads, appends, parks and replays for any shard."""
