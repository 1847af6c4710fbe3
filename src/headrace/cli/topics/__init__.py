"""What the commands of `headrace topic` do once their command line is read."""
