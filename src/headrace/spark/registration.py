"""Makes the format known to a Spark session. PySpark is imported when it is used, not before."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """After this, `format("headrace")` reads and writes topics in this session.

    Workers need `headrace[spark]` installed as the driver has it. Those of a local session run the driver's
    Python, unless PYSPARK_PYTHON or `spark.pyspark.python` names another.
    """
    from headrace.spark.source import HeadraceDataSource

    _share_python(spark)
    spark.dataSource.register(HeadraceDataSource)


def _share_python(spark: "SparkSession") -> None:
    """Spark takes whatever `python3` is first on the PATH, which is another one outside of an activated
    environment, and knows nothing of what is installed here."""
    if not spark.conf.get("spark.master", "").startswith("local"):  # type: ignore[union-attr]
        return
    if "PYSPARK_PYTHON" not in os.environ and spark.conf.get("spark.pyspark.python", None) is None:
        spark.sparkContext.pythonExec = sys.executable
