"""The data source that Spark knows as `headrace`: it reads its options and makes readers and writers."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from headrace.spark.errors import OptionRefused, Plainly
from headrace.spark.option_names import Use
from headrace.spark.options import SinkOptions, read_sink_options, read_source_options
from headrace.spark.schema import check_read_schema, source_schema
from headrace.spark.sink_columns import check_write_columns


class HeadraceDataSource(DataSource):
    """Topics of a cluster as a table, a stream or a sink."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(...)`."""
        return "headrace"

    def schema(self) -> StructType:
        """The columns of a topic. Options are checked here already, before a query runs."""
        with Plainly():
            return source_schema(has_headers=read_source_options(self.options, None).has_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        from headrace.spark.readers import BatchReader

        with Plainly():
            options = read_source_options(self.options, Use.BATCH_READ)
            check_read_schema(schema, has_headers=options.has_headers)
            return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """For `spark.readStream`."""
        from headrace.spark.readers import StreamReader

        with Plainly():
            options = read_source_options(self.options, Use.STREAM_READ)
            check_read_schema(schema, has_headers=options.has_headers)
            return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`."""
        from headrace.spark.writers import BatchWriter

        with Plainly():
            if overwrite:
                raise OptionRefused("mode", "rows can only be appended to a topic; use mode('append')")
            return BatchWriter(self._sink_options(schema, Use.BATCH_WRITE))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """For `df.writeStream`. In the mode complete every batch appends all its rows, as in Spark's sink."""
        from headrace.spark.writers import StreamWriter

        with Plainly():
            return StreamWriter(self._sink_options(schema, Use.STREAM_WRITE))

    def _sink_options(self, schema: StructType, use: Use) -> SinkOptions:
        options = read_sink_options(self.options, use)
        check_write_columns(schema, options)
        return options
