"""What the node counts and measures, and how Prometheus reads it. No clocks and no sockets of its own."""
