"""TABLE_FORMATS: endings of tables that are written."""

__all__ = ["TABLE_FORMATS"]

TABLE_FORMATS = ("parquet", "csv", "jsonl")
