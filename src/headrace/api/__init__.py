"""What clients may ask a node: one module per API, named by its key.

Each module says which versions it speaks and handles one request: it checks, asks the domain rooms and builds
the reply. Nothing here knows sockets or frames, and no state lives here but that of fetch sessions."""
