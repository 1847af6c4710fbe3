"""What `headrace produce` does once its command line is read."""
