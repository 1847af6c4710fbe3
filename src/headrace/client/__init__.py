"""Talking to a cluster: connections, metadata, columns in and out, administration; nothing of the server."""
