"""What `headrace log dump` prints: one module per kind of file, and the two output formats."""
