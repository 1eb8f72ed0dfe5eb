"""A page of HTML with every figure, every claim and its verdict.

`contents` gathers what results, records, errata and coverage say; `html` turns it into one file
that needs nothing else.
"""
