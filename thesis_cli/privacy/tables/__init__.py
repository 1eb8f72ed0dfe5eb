"""Private tables and their public description.

`table.py` opens a table, of one of the kinds in `table_kinds.py` (CSV, Parquet, DataFrames, queries), encodes
its rows and bounds those of a person; `linked.py` joins persons with their households; `schema.py`
encodes rows by columns (`column.py` is the base of their types, `columns.py` and `dates.py` have them)
and has the rules between these and rows that obey them; `expressions.py` is the language of
queries, `overlap.py` finds private rows among public ones, `suggestions.py` rules that public rows obey.
Imports no other room.
"""
