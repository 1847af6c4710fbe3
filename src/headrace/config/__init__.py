"""Configuration: every key of a node, a topic, a group, a metrics subscription and a quota.

What a key is called, which values it takes, what it means here, whether it can change at run time, where
its value comes from, and how it is shown to a client. This room reads no file and no environment by itself:
texts, mappings and ports come in as arguments.
"""
