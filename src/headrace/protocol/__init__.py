"""The wire: messages, their codec, and frames. No I/O."""
