"""Topics as tables and streams of Spark, through the client alone."""

from headrace.spark.registration import register as register
