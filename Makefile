# Everything runs from .venv, which `make install` builds (again only when the pins change).
#   make test | test-integration | test-long | lint | reproduce-quick | reproduce-all | report     JOBS=2, UV=no and COMPILE=no are understood.
#   make site    the documents as a site that reads without a server, in site/
#   make install EXTRAS=dev,nn    with PyTorch, to train the guide network; without it, tests of training are left out
#   make test SEED=3    shuffles the order of the tests; EXAMPLES=3 draws other examples than those that are always the same
#   make wheelhouse; then, where there is no network, make install WHEELS=wheelhouse
#   make reproduce-all ENGINE=slurm SLURM='--partition short --time 30 --array-limit 50'    see docs/cluster.md
PYTHON ?= python3
JOBS ?= $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')
ENGINE ?= local
UV ?= $(shell command -v uv 2>/dev/null)
BIN := .venv/bin
EXTRAS ?= dev
COMMA := ,
STAMP := .venv/installed-$(subst $(COMMA),-,$(EXTRAS))
COMPILED := .venv/compiled
INSTALL_ARGS := $(if $(WHEELS),--no-index --find-links '$(WHEELS)') -c constraints.txt -e '.[$(EXTRAS)]'

.PHONY: install test test-integration test-long lint docs site reproduce-quick reproduce-all report tables cps1988 tasks pictures prior published models families silhouettes held-out weights other-weights bench peers constraints wheel wheelhouse axe clean

install: $(STAMP) $(if $(filter no,$(COMPILE)),,$(COMPILED))

# uv where it is there and works; otherwise (or with UV=no) the standard library's venv and pip. More extras are added to
# the environment that stands; other pins make it anew.
.venv/made: pyproject.toml constraints.txt
	rm -rf .venv
	{ [ -n "$(UV)" ] && [ "$(UV)" != no ] && "$(UV)" venv -q --python "$$(command -v $(PYTHON))" .venv; } \
	  || $(PYTHON) -m venv --clear .venv
	touch $@

$(STAMP): .venv/made
	if [ -n "$(UV)" ] && [ "$(UV)" != no ] && "$(UV)" pip install -q --python $(BIN)/python $(INSTALL_ARGS); then \
	    echo "installed with uv"; \
	else \
	    { [ -x $(BIN)/pip ] || $(PYTHON) -m venv --clear .venv; } \
	    && $(BIN)/python -m pip install -q --disable-pip-version-check $(INSTALL_ARGS) && touch .venv/made \
	    && echo "installed with pip"; \
	fi
	touch $@

# The code of the common commands, compiled on all cores into numba's cache. Nothing depends on it: what is missing is
# compiled when it is used. After Ctrl-C the next `make` continues.
$(COMPILED): $(STAMP)
	$(BIN)/thesis-cli compile --jobs $(JOBS) || echo "not everything is compiled; commands compile what they need"
	touch $@

# Byte code is kept even where the environment forbids it: many tests start processes. Each of these has one thread for
# linear algebra, because threads that wait for each other take the cores from other tests.
# One process more than cores, because some tests wait.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $$(($(JOBS) + 1)) --dist worksteal \
	$(if $(SEED),--randomly-seed=$(SEED) --randomly-dont-reset-seed,-p no:randomly) $(EXAMPLES:%=--hypothesis-seed=%)

test: install
	$(PYTEST)

# Each example of the help and of the documents; training; and what is tested with Slurm, PostgreSQL and chromium where
# these are installed. Adds PyTorch and mkdocs to .venv, and so for good.
test-integration:
	$(MAKE) install EXTRAS=dev,nn,docs
	$(PYTEST) -m "(integration or torch) and not long"

# All cases, also those that take longer (fuzzed files, comparisons with other readers, Slurm at
# length), and many more examples of each property: an hour and more.
test-long: install
	$(PYTEST) -m "" --hypothesis-profile long

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tables of options in docs/ and the types of the Python functions, from thesis_cli/commands; and
# docs/coverage.md, from data/coverage/ and results/claims.csv; and hours in docs/reproduce.md, from the records.
docs: install
	$(BIN)/python -m thesis_cli.reproduction.documents
	$(BIN)/python -m thesis_cli.reproduction.coverage

# All documents as one site, which opens without a server. A dead link, or a page that is not in mkdocs.yml, is an error.
site:
	$(MAKE) install EXTRAS=dev,docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "open site/index.html"

reproduce-quick: install
	$(BIN)/thesis-cli reproduce --preset quick --jobs $(JOBS)

reproduce-all: install
	$(BIN)/thesis-cli reproduce --preset paper --jobs $(JOBS) --engine $(ENGINE) $(SLURM)

# The page of the committed results, after `make reproduce-all`.
report: install
	$(BIN)/thesis-cli report

tables: install
	$(BIN)/python -m thesis_cli.privacy.examples data/tables

# Wages of a survey, from a package of data sets: not in the repository.
cps1988: install
	$(BIN)/python -m thesis_cli.privacy.examples data/tables --cps1988

tasks: install
	$(BIN)/python -m thesis_cli.studies.synthesis.thesis_programs data/tasks

# Pictures of the README and of docs/synthesize.md. Noise of a release cannot be seeded, so docs/release.png changes.
pictures: install
	$(BIN)/python -m thesis_cli.studies.synthesis.join_picture docs/join.png
	$(BIN)/thesis-cli spin-glass --size 10x10 --samples 200 --seed 1 --out results/runs/picture.csv --figure results/runs/bounds.png
	rm -f results/runs/release.csv results/runs/release.json
	$(BIN)/thesis-cli dp-release data/tables/people.csv --schema data/tables/people.toml --epsilon 1 --delta 1e-6 --out results/runs/release.csv --figure results/runs/release.png
	cp results/runs/bounds.png results/runs/release.png docs/
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1000,883 --screenshot=docs/report.png \
	  file://$(CURDIR)/results/report.html

# What a search without a network tries first, counted in a corpus; and what makes a program that fits probable.
prior: install
	$(BIN)/python -m thesis_cli.synthesis.prior
	$(BIN)/python -m thesis_cli.synthesis.meant.fitting

# Tables of the author's published data, from a folder of the files: make published FILES=folder
published: install
	$(BIN)/python -m thesis_cli.studies.published_data $(FILES)

models: install
	$(BIN)/python -m thesis_cli.studies.models.examples data/models

# Networks like those of public competitions, on which the exact methods are timed: make families FOLDER=folder
FOLDER ?= results/runs/families
families: install
	$(BIN)/python -m thesis_cli.studies.models.families $(FOLDER)

# Silhouettes of a man to learn denoising from, clean and with flipped pixels: make silhouettes IMAGES=folder
IMAGES ?= results/runs/silhouettes
silhouettes: install
	$(BIN)/python -m thesis_cli.studies.learning.silhouettes $(IMAGES)

# The programs on which nothing is trained: test programs of each length, and those of the thesis.
held-out: install
	$(BIN)/python -m thesis_cli.studies.synthesis.held_out

# The guides that come with the package; needs EXTRAS=dev,nn, and 28 minutes of one core. After Ctrl-C it goes on.
WEIGHTS := thesis_cli/synthesis/weights
weights: install
	$(BIN)/thesis-cli train-guide --length 1 --embedding 2 --programs-seen 400000 --out $(WEIGHTS)/embedding-2.safetensors
	$(BIN)/thesis-cli train-guide --length 1 --programs-seen 300000 --out $(WEIGHTS)/lines-1.safetensors
	$(BIN)/thesis-cli train-guide --length 2 --programs-seen 600000 --out $(WEIGHTS)/lines-2.safetensors
	$(BIN)/thesis-cli train-guide --length 3 --programs-seen 1800000 --out $(WEIGHTS)/lines-3.safetensors
	$(BIN)/thesis-cli train-guide --length 4 --programs-seen 2800000 --rate 0.01 --out $(WEIGHTS)/lines-4.safetensors
	$(BIN)/thesis-cli train-guide --overwrite --model next-line --programs-seen 480000 --rate 0.0015 --out $(WEIGHTS)/next-line.safetensors

# What four other trainings of the guides predict, for the spread over trainings; needs EXTRAS=dev,nn, and two hours
# of one core. After Ctrl-C it goes on.
TRAININGS ?= results/runs/trainings
SEEDED = for seed in 1 2 3 4; do $(BIN)/thesis-cli train-guide --float32 --seed $$seed $(1)-seed-$$seed.safetensors || exit; done
trainings: install
	$(call SEEDED,--length 4 --programs-seen 2800000 --rate 0.01 --out $(TRAININGS)/lines-4)
	$(call SEEDED,--length 3 --programs-seen 1800000 --out $(TRAININGS)/lines-3)
	$(call SEEDED,--length 2 --programs-seen 600000 --out $(TRAININGS)/lines-2)
	$(call SEEDED,--length 1 --programs-seen 300000 --out $(TRAININGS)/lines-1)
	$(call SEEDED,--length 1 --embedding 2 --programs-seen 400000 --out $(TRAININGS)/embedding-2)
	$(BIN)/python -m thesis_cli.studies.synthesis.predictions $(TRAININGS)

# Networks like the other shipped ones, in another 11 minutes; the model cards of those say how they were trained.
OTHER := $(BIN)/thesis-cli train-guide --overwrite
other-weights: install
	$(OTHER) --model gru --programs-seen 350000 --rate 0.002 --out $(WEIGHTS)/gru-encoder.safetensors
	$(OTHER) --model program --programs-seen 1000000 --rate 0.003 --out $(WEIGHTS)/program.safetensors

bench: install
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/full_rank.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/map.py
	$(BIN)/python benchmarks/mixed_map.py
	$(BIN)/python benchmarks/mpe.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/structures.py
	$(BIN)/python benchmarks/structured.py
	$(BIN)/python benchmarks/renyi.py
	$(BIN)/python benchmarks/kernel_eval.py
	$(BIN)/python benchmarks/privacy.py
	$(BIN)/python benchmarks/search.py --lengths 5 6 --tasks 30
	$(BIN)/python benchmarks/a_star.py
	$(BIN)/python benchmarks/arrays.py
	$(BIN)/python benchmarks/denoise.py

# Other generators of private tables, in an environment of their own: over 1 GB, and minutes to hours.
peers: install
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install -q -r benchmarks/requirements-peers.txt
	$(BIN)/python benchmarks/private_peers.py

# Maintainers: new pins for every extra; needs uv. No line may name a package host.
# torch stays at a release of which there is a build without GPU libraries wherever this is tested.
constraints:
	echo 'torch==2.13.0' > build-constraints.txt
	uv pip compile pyproject.toml -c build-constraints.txt --all-extras --universal --python-version 3.11 --upgrade \
	  --no-header --no-annotate -o constraints.txt; status=$$?; rm build-constraints.txt; exit $$status

# Finds what keeps people from reading a page; for the tests in a browser alone. Needs npm.
AXE := axe-core-4.14.1
axe: .venv/axe/package/axe.min.js
.venv/axe/package/axe.min.js: | install
	mkdir -p .venv/axe
	cd .venv/axe && npm pack --silent $(subst axe-core-,axe-core@,$(AXE))
	echo "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745  .venv/axe/$(AXE).tgz" | sha256sum --check --quiet
	tar xzf .venv/axe/$(AXE).tgz -C .venv/axe --no-same-owner -m

# All packages that `make install` needs, for machines of this kind that have no network.
wheelhouse:
	$(PYTHON) -m pip download -q -d wheelhouse -c constraints.txt hatchling editables '.[$(EXTRAS)]'

wheel: install
	$(BIN)/python -m build --wheel

clean:
	rm -rf .venv build dist site wheelhouse results/.store results/quick results/runs
