"""The tables of keys, one module for each subject. Data only: what a key does lives elsewhere."""
