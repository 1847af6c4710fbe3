"""Topics as tables and streams of Spark, through the client alone."""
