"""What `headrace consume` does once its command line is read."""
