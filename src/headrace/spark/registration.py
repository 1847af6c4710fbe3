"""Makes the format known to a Spark session. PySpark is imported when it is used, not before."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """After this, `format("headrace")` reads and writes topics in this session.

    Workers need `headrace[spark]` installed as the driver has it.
    """
    from headrace.spark.source import HeadraceDataSource

    spark.dataSource.register(HeadraceDataSource)
