"""The node as a process: what it needs before it starts, its parts put together, its timers and its end."""
