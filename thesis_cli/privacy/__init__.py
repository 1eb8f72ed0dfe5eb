"""Differentially private releases of a table by kernel mean embeddings (Thesis chapter 4). Start at
`release`.

* The private table: `table` reads it, `schema` and `columns` describe and encode it, `kernels`
  compares its rows.
* The release: `release` makes the record (`release_record`) and rows from it (`release_files`), by
  random features (`features`, `points`, `atoms`, `frank_wolfe`), in the span of public points
  (`subspace`), or by the exponential mechanism (`exponential`). `embedding` has the exact means,
  and `*_kernels` the compiled loops.
* Privacy: `mechanism` draws the noise with OpenDP, `ledger` adds up budgets, `audit_bounds` and
  `audit_runs` audit.
* Use of a release: `query`, `expressions`, `weighted_sample`, `regression`, and the tests of
  `two_sample`.

Settings of published figures, seeded noise and baselines are in `thesis_cli.studies.privacy`.
"""
