"""Benchmarks: Headrace beside its peers, in one run, alternating."""
