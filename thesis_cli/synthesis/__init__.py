"""Programs from examples: a small language of lists (DeepCoder's), exact searches, searches that are
led by networks, and corpora of programs.

Start with `dsl.py`, the language as two tables, `program.py` (notation, interpreter) and `task.py`
(examples). `solver.py` defines what a solver takes and returns, and `solvers.py` registers all
solvers: `depth_first.py`, `bottom_up.py`, `auto.py`, `deductive_search.py` (rules in
`goal_rules.py`) and `smt_search.py` (formulas in `smt_formulas.py`). `guide.py` defines what gives
each task an order of its own. `beam_search.py` writes whole programs by the probabilities of a
network; `anytime_beam.py` builds them line by line (`execution.py`, `moves.py`), led by a policy
(`policy.py`). `networks` has the networks, and `training` how they learn. `sameness.py` decides which
listed programs do the same. `batch.py` solves many tasks and keeps a journal. `prior.py` has the
order in which searches try operations. Corpora: `corpus.py` (arrays), `corpus_file.py` (NPZ),
`corpus_maker.py` (how they are made), `behaviours.py` (which programs do the same), `balance.py`
and `balance_fit.py` (other distributions than the uniform one), `shares.py` (what programs use),
`input_ranges.py` (inputs that keep a program within its range). Files that end in `kernels` are
compiled; `lanes.py` describes the arrays that they work on.
"""
