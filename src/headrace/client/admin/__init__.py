"""Administration of a cluster: plain async functions that take a Cluster, one noun a module.

Functions that take several items answer with `Outcomes`: each item has its own result, and one that is
refused does not fail the others."""
