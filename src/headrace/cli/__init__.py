"""The headrace command line."""
