"""Talking to a cluster: connections, metadata, columns in and out, administration. Nothing of the server side."""
