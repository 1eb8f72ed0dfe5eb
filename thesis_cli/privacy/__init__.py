"""Differentially private releases of a table by kernel mean embeddings (Thesis chapter 4).

Start with `release/release.py`, which makes a record of a table and rows from that record. Rooms, from
the ground up: `tables` (what is read, and its schema), `embedding` (means, random features, points),
`mechanisms` (noise from OpenDP, who is protected), `copula` and `release` (methods, records, rows),
`query` (statistics of a release), `measure` (statistics of the table itself), `accounting` (the
ledger), `audit`. `kernels.py` compares rows. `make lint` holds which room may import which. Settings of
published figures, seeded noise and baselines are in `thesis_cli.studies.privacy`, out of reach.
"""
