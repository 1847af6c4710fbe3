"""Connections on the event loop: frames in, replies out in order, file ranges without copying."""
