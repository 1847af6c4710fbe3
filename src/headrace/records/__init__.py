"""Record batches, format v2: views, building, reading, validating, compression. No I/O."""
