"""Differentially private releases of a table by kernel mean embeddings (Thesis chapter 4).

Start at `release`, which makes a record of a table and rows from that record.

* The private table: `table` (with `table_base` and `database`) reads it, `schema` and `columns`
  describe and encode it, `kernels` compares its rows.
* The release: `release_record` and `release_files` hold it. It is made by random features
  (`features`, `points`, `atoms`, `frank_wolfe`), in the span of public points (`subspace`), or by
  the exponential mechanism (`exponential`). `embedding` has the exact means, `*_kernels` compiled
  loops.
* Privacy: `mechanism` draws the noise with OpenDP, `ledger` adds up budgets, `audit_runs` (with
  `audit_pairs`, `audit_scores` and `audit_bounds`) audits releases.
* Use of a release: `query`, `expressions`, `weighted_sample`, `regression`, and `two_sample`.

Statistics of weighted points, weights on the simplex and descents are those of
`thesis_cli.embeddings`.

Settings of published figures, seeded noise and baselines are in `thesis_cli.studies.privacy`.
"""
