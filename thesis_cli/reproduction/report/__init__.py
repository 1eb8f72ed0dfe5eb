"""Pages of HTML: all figures, claims and verdicts; two folders of results; a user's own runs.

`files` reads a folder of results, `contents` gathers the report and `page` renders it; `compared`
and `runs` are the other two pages. Each page is one file that needs nothing else.
"""
