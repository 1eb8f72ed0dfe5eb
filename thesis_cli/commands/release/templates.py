"""`dp-release --init-schema`: a schema to fill in, or one with rules that public rows suggest. No value of
a private table is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thesis_cli.base.columns import Columns
from thesis_cli.base.files import write_atomic
from thesis_cli.commands.core.fields import settings_of
from thesis_cli.commands.core.result import check_overwritten
from thesis_cli.commands.inputs.tables import read_rows, table_label
from thesis_cli.commands.release.result import ReleaseResult

if TYPE_CHECKING:
    from thesis_cli.commands.dp_release import ReleaseRequest
    from thesis_cli.privacy.tables.schema import Schema


def init_schema(request: ReleaseRequest, schema: Schema | None) -> ReleaseResult:
    """Write the template; `schema` is that which rules are suggested for, if there is one."""
    from thesis_cli.privacy.tables.schema import template
    from thesis_cli.privacy.tables.suggestions import with_suggestions
    from thesis_cli.privacy.tables.table import open_table

    assert request.init_schema is not None
    check_overwritten("--init-schema", request.init_schema, request.overwrite)
    if schema is not None:
        assert request.public is not None
        public = read_rows(request.public, schema, delimiter=request.delimiter)
        text, rules = with_suggestions(schema, public, table_label(request.public))
        stored = Columns({"rule": list(rules)})
    else:
        assert request.table is not None
        columns = open_table(request.table, request.query, delimiter=request.delimiter or "").columns
        text, stored = template(columns), Columns({"column": list(columns), "storage": list(columns.values())})
    write_atomic({request.init_schema: text})
    return ReleaseResult(columns=stored, request=request, settings=settings_of(request), template=text)
