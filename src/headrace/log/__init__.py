"""A partition's log on disk, in Apache Kafka's own files. All access goes through the Disk port."""
