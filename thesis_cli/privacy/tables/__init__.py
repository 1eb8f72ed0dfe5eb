"""Private tables and their public description.

`table.py` opens CSV, Parquet, DataFrames and queries (`table_csv.py`, `table_typed.py`, `database.py`;
`table_base.py` is what they share), `persons.py` bounds the rows of a person, `linked.py` joins persons
with their households; `schema.py` encodes rows by columns (`column.py` is the base of their types,
`columns.py` and `dates.py` have them) and rules (`constraints.py`); `expressions.py` is the language of
queries, `overlap.py` finds private rows among public ones, `suggestions.py` rules that public rows obey.
Imports no other room.
"""
