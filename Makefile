# Everything here works on a fresh clone with python3 (with venv), make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SDK    := .venvs/sdk
WEB    := .venvs/browser
AGENTS := .venvs/agents
CALLERS := .venvs/callers
A2A    := .venvs/a2a
A2A_OLD := .venvs/a2a-0.3
A2A_FRAMEWORK := .venvs/a2a-framework
A2A_ADK := .venvs/a2a-adk
A2A_JS := .venvs/a2a-js
STAMP  := $(VENV)/.installed
SMALL  := $(VENV)/.runs
DEMO   := $(VENV)/.demo
RELEASE := .venvs/release
API    := .venvs/api
SLIM   := .venvs/slim
DOCS   := .venvs/docs
RECIPES := .venvs/recipes
PIP    := -m pip --disable-pip-version-check -q

# Each worker has half of the files, so that what a file shares is made once.
SPREAD := -n 2 --dist worksteal

# Tests start hundreds of processes, which would each compile all that they import.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install venv constraints demo quick fast test check house house-static assertions format lint types contracts wheel sdk-env api-env test-api agents-env callers-env a2a-env a2a-0.3-env a2a-framework-env a2a-js-env test-callers test-clients test-readme bench bench-files bench-growth bench-long corpus-control test-sandbox test-unprivileged test-redis kill groups groups-fleet walks crossings bench-groups kill-files long-call cron-years push-minute test-everything attacks obedient soak fuzz mutants explore clean slim-env bench-slim a2a-adk-env test-long release test-release container pictures

help:
	@echo "make demo    two agents meet, agree and call (start here; it installs what it needs)"
	@echo "make install anpd with all that it needs to run, in .venv (make venv adds what tests need)"
	@echo "make quick   the pure tests: no socket, no process, two minutes of CPU time at most"
	@echo "make fast    all tests but those that take over two seconds"
	@echo "make test    all tests, with the official SDK as a peer"
	@echo "make test-long  more of the same: all pairs and all numbers, of which make test has a part"
	@echo "make check   format, lint, types, import contracts, tests, wheel"
	@echo "make test-callers  every kind of caller against every kind of attachment (make test has it too)"
	@echo "make docs    the documents as a site in build/site/html, with search; broken links are errors"
	@echo "make test-recipes  the recipes: TLS, MCP clients, LangGraph, CrewAI, OpenAI Agents SDK (installs 1.2 GB)"
	@echo "make test-clients  clients of A2A that others wrote, against the A2A face: a table"
	@echo "make test-api      the local API against its OpenAPI document, by schemathesis"
	@echo "make test-readme   the README's walk with its own installation"
	@echo "make test-browser  the dashboard in Debian's chromium, and pictures of it in build/screenshots"
	@echo "make pictures  the dashboard's pictures of the documents, in docs/pictures"
	@echo "make release wheel, sdist, list of packages and signed checksums in build/release (test-release installs them)"
	@echo "make container  the image, built on a root of Debian and run"
	@echo "make bench   ratios: a call against a raw echo, streamed updates, the sandbox's goals (bench-long: 100,000 calls)"
	@echo "make kill-files   ten kills while a file of 256 MiB is under way (bench-files: 1 GiB against a raw copy)"
	@echo "make kill    fifty kills on each side in calls, thirty-five in tasks, at named states, sixty with inbox, callback and outbox"
	@echo "make groups  a group of eight daemons: 10,000 messages, calm, and with kills of hub and members"
	@echo "make groups-fleet  a group whose hub is a fleet of three over Redis, with kills of the fleet"
	@echo "make walks   2,000 walks of a hub and five members over links that lose, repeat and reorder"
	@echo "make crossings  2,000 histories of three daemons whose calls, tasks, files and groups cross with kills and cuts"
	@echo "make bench-growth  a warm call and memory over peers, agreements, links, callers and sizes"
	@echo "make bench-groups  groups of 2, 8 and 32 members against SLIM, by turns"
	@echo "make long-call  a call of ten minutes over a link that is cut three times"
	@echo "make cron-years  two years of cron in all zones that change their clocks, with kills (ten minutes)"
	@echo "make push-minute  push notifications for a receiver that is away for a minute"
	@echo "make test-everything  the MCP reference server attached, by every face"
	@echo "make obedient over eighty attacks on a model that obeys every text (three minutes)"
	@echo "make attacks over fifty attacks on a daemon, and what good peers see meanwhile (half an hour)"
	@echo "make soak    fifty peers, reloads and kills for a quarter of an hour; every answer compared"
	@echo "make explore new examples for every property test (make test repeats known ones)"
	@echo "make test-redis  the store on a real Redis or Valkey server, and two daemons that share it"
	@echo "make house   the measures of the code and of one warm call, against their limits"
	@echo "make assertions  every assertion of the tests, to compare two commits"
	@echo "make mutants 500 halves with one fault in their data, and how many the trial and the cases find"
	@echo "make fuzz    10,000 generated conversations between two sides, and counts"

# Enough to run anpd with all its extras: no tools for tests, and no resolving.
install: $(SMALL)

$(SMALL): pyproject.toml deploy/local/requirements.txt
	@test $(STAMP) -nt pyproject.toml && test $(STAMP) -nt deploy/local/requirements.txt || $(PYTHON) deploy/local $(VENV)
	@touch $@

# The demo has less; what has more serves it, too.
$(DEMO): pyproject.toml deploy/local/demo.txt
	@for have in $(SMALL) $(STAMP); do test $$have -nt pyproject.toml && exit 0; done; $(PYTHON) deploy/local $(VENV) demo
	@touch $@

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install --require-hashes -r constraints.txt
	$(BIN)/python $(PIP) install --no-deps --no-build-isolation -e .
	$(BIN)/python $(PIP) check
	touch $(STAMP)

# Writes the hashes of all pinned versions anew, from the index that pip uses here.
constraints: venv
	$(BIN)/python -m tests.house.pins

# The official SDK also imports as `anp`, so it lives in an environment of its own.
sdk-env: $(SDK)/.installed

$(SDK)/.installed: tests/sdk/requirements.txt
	test -x $(SDK)/bin/python || $(PYTHON) -m venv $(SDK)
	$(SDK)/bin/python $(PIP) install -r tests/sdk/requirements.txt
	touch $@

# What owners attach pins other versions than we do, so it has its own as well.
agents-env: $(AGENTS)/.installed

$(AGENTS)/.installed: tests/e2e/agents/requirements.txt
	test -x $(AGENTS)/bin/python || $(PYTHON) -m venv $(AGENTS)
	$(AGENTS)/bin/python $(PIP) install -r tests/e2e/agents/requirements.txt
	touch $@

# So do callers: LangChain brings an MCP client of its own choice.
callers-env: $(CALLERS)/.installed

$(CALLERS)/.installed: tests/callers/requirements.txt
	test -x $(CALLERS)/bin/python || $(PYTHON) -m venv $(CALLERS)
	$(CALLERS)/bin/python $(PIP) install -r tests/callers/requirements.txt
	touch $@

# Agents made with the A2A library: today's with a store of its own, and the old one.
a2a-env: $(A2A)/.installed

$(A2A)/.installed: tests/a2a/agents/requirements-1.txt
	test -x $(A2A)/bin/python || $(PYTHON) -m venv $(A2A)
	$(A2A)/bin/python $(PIP) install -r tests/a2a/agents/requirements-1.txt
	touch $@

a2a-0.3-env: $(A2A_OLD)/.installed

$(A2A_OLD)/.installed: tests/a2a/agents/requirements-0.3.txt
	test -x $(A2A_OLD)/bin/python || $(PYTHON) -m venv $(A2A_OLD)
	$(A2A_OLD)/bin/python $(PIP) install -r tests/a2a/agents/requirements-0.3.txt
	touch $@

# A framework that calls agents of A2A.
a2a-framework-env: $(A2A_FRAMEWORK)/.installed

$(A2A_FRAMEWORK)/.installed: tests/a2a/clients/requirements-framework.txt
	test -x $(A2A_FRAMEWORK)/bin/python || $(PYTHON) -m venv $(A2A_FRAMEWORK)
	$(A2A_FRAMEWORK)/bin/python $(PIP) install -r tests/a2a/clients/requirements-framework.txt
	touch $@

# Another library for groups of agents, which ours are measured against.
slim-env: $(SLIM)/.installed

$(SLIM)/.installed: bench/groups/slim/requirements.txt
	test -x $(SLIM)/bin/python || $(PYTHON) -m venv $(SLIM)
	$(SLIM)/bin/python $(PIP) install -r bench/groups/slim/requirements.txt
	touch $@

# Another one, which brings today's.
a2a-adk-env: $(A2A_ADK)/.installed

$(A2A_ADK)/.installed: tests/a2a/clients/requirements-adk.txt
	test -x $(A2A_ADK)/bin/python || $(PYTHON) -m venv $(A2A_ADK)
	$(A2A_ADK)/bin/python $(PIP) install -r tests/a2a/clients/requirements-adk.txt
	touch $@

# The JavaScript SDK; without node and npm its clients are left out of the table.
a2a-js-env: $(A2A_JS)/.installed

$(A2A_JS)/.installed: tests/a2a/clients/package.json
	mkdir -p $(A2A_JS)
	cp tests/a2a/clients/package.json $(A2A_JS)/
	if command -v npm; then cd $(A2A_JS) && npm install --no-audit --no-fund && touch .installed; else echo "no npm here: the JavaScript clients are left out"; fi

# Clients that others wrote, against the A2A face: a table of clients and methods.
test-clients: venv a2a-0.3-env a2a-framework-env a2a-adk-env a2a-js-env
	$(BIN)/python -m tests.a2a.clients

.PHONY: docs docs-env cast recipes-env test-recipes

# Two machines, MCP clients, and frameworks as callers, as the recipes show them.
recipes-env: $(RECIPES)/.installed

$(RECIPES)/.installed: tests/callers/recipes/requirements.txt
	test -x $(RECIPES)/bin/python || $(PYTHON) -m venv $(RECIPES)
	$(RECIPES)/bin/python $(PIP) install -r tests/callers/recipes/requirements.txt
	touch $@

test-recipes: venv recipes-env
	ANPD_RECIPES=1 $(BIN)/pytest -n 0 tests/callers/recipes tests/e2e/test_recipes.py

# The generator of the site, which pins what it needs.
docs-env: $(DOCS)/.installed

$(DOCS)/.installed: docs/site/requirements.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP) install -r docs/site/requirements.txt
	touch $@

# A link that leads nowhere is an error here; the links of the Markdown are tested by `make test`.
docs: venv docs-env
	$(BIN)/python -m tests.site sources build/site/source
	rm -rf build/site/html
	NO_COLOR=1 $(DOCS)/bin/zensical build --strict -f build/site/zensical.toml
	$(BIN)/python -m tests.site check build/site/html

# Draws the pictures of the documents from their texts, and the README's walk from a real run.
cast: venv
	$(BIN)/python -m tests.site pictures
	$(BIN)/python -m tests.site cast

# schemathesis pins other versions of what we use.
api-env: $(API)/.installed

$(API)/.installed: tests/api/requirements.txt
	test -x $(API)/bin/python || $(PYTHON) -m venv $(API)
	$(API)/bin/python $(PIP) install -r tests/api/requirements.txt
	touch $@

# The local API against its OpenAPI document: no 5xx, no undocumented answer.
test-api: venv api-env
	$(BIN)/python -m tests.api.fuzz $(API)/bin/schemathesis 25

# Drives the system's browser; nothing but packages is downloaded.
browser-env: $(WEB)/.installed

$(WEB)/.installed: pyproject.toml constraints.txt tests/browser/requirements.txt
	test -x $(WEB)/bin/python || $(PYTHON) -m venv $(WEB)
	$(WEB)/bin/python $(PIP) install --require-hashes -r constraints.txt
	$(WEB)/bin/python $(PIP) install -r tests/browser/requirements.txt
	$(WEB)/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	touch $@

# Installs chromium where it may (root and apt), else says what is missing.
test-browser: browser-env docs
	tests/browser/ensure_chromium.sh
	$(WEB)/bin/python -m pytest -n 0 tests/browser

# The pictures of the documents, and all pages in all looks in build/screenshots/pages.
pictures: browser-env
	tests/browser/ensure_chromium.sh
	mkdir -p docs/pictures
	ANPD_PICTURES=docs/pictures $(WEB)/bin/python -m pytest -n 0 -q tests/browser/test_pages.py -k test_every_page

demo: $(DEMO)
	@$(BIN)/anpd demo

# Writes build/quick.json, and fails when it took more CPU time than it may.
quick: venv
	$(BIN)/python -m tests.loops -n 2 -m "not slow"

fast: venv
	$(BIN)/pytest $(SPREAD) -m "not slow"

test: venv sdk-env agents-env callers-env a2a-env a2a-0.3-env a2a-framework-env a2a-js-env
	$(BIN)/pytest $(SPREAD)

# All pairs of failures and steps, thousands of conversations: what is marked long.
test-long: venv
	$(BIN)/pytest $(SPREAD) -m long

# Every kind of caller against every kind of attachment, through two daemons.
test-callers: venv agents-env callers-env
	$(BIN)/pytest -n 0 tests/callers

# The walk of the README with `make install` as a reader has it; `make test` skips the installing.
test-readme: venv
	ANPD_README=make $(BIN)/pytest -n 0 tests/e2e/test_readme.py

check: venv sdk-env agents-env callers-env a2a-env a2a-0.3-env a2a-framework-env a2a-js-env format lint types contracts house-static test wheel

format: venv
	$(BIN)/ruff format --check .

lint: venv
	$(BIN)/ruff check .

types: venv
	$(BIN)/mypy
	$(BIN)/mypy clients

contracts: venv
	$(BIN)/lint-imports

# The wheel is built, installed into an environment of its own and imported from there.
wheel: venv
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel . > build/wheel/log.txt 2>&1 || (cat build/wheel/log.txt; exit 1)
	$(PYTHON) -m venv build/wheel/venv
	sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\).*/\1/p' constraints.txt > build/wheel/pins.txt
	build/wheel/venv/bin/python $(PIP) install -c build/wheel/pins.txt build/wheel/*.whl
	cd build/wheel && venv/bin/python -I -c "import anp.cli, negotiation, sandbox, cache, jsonic; print('wheel imports')"
	cd build/wheel && venv/bin/anpd --version

# RELEASE_KEY=FILE signs with an Ed25519 key (PEM), such as `openssl genpkey -algorithm ed25519` makes.
release: $(RELEASE)/.installed
	$(RELEASE)/bin/python -m deploy.release build/release $(RELEASE_KEY)

$(RELEASE)/.installed: deploy/release/requirements.txt
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python $(PIP) install -r deploy/release/requirements.txt
	touch $@

# Wheel and sdist installed with pipx and with uv, and started; a minute.
test-release: release
	deploy/release/trial.sh build/release $(RELEASE)/bin

# Builds the image on a root of Debian, without a base image, and runs it; three minutes.
container:
	tests/deploy/container.sh build/container

bench: venv a2a-env sdk-env slim-env
	$(BIN)/python -m bench.call
	$(BIN)/python -m bench.direct
	$(BIN)/python -m bench.face
	$(BIN)/python -m bench.first_call
	$(BIN)/python -m bench.frames
	$(BIN)/python -m bench.peers
	$(BIN)/python -m bench.ready
	$(BIN)/python -m bench.sandbox
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.updates

# Some 5 minutes; GROWTH="--write" puts tables and pictures into the documentation.
bench-growth: venv
	$(BIN)/python -m bench.growth $(GROWTH)

bench-long: venv
	$(BIN)/python -m bench.sandbox --long

# The sandbox's tests with another Python, such as PYTHON=python3.13.
test-sandbox:
	$(MAKE) VENV=.venvs/$(notdir $(PYTHON)) venv
	ANPD_PROGRAMS=5000 .venvs/$(notdir $(PYTHON))/bin/pytest -n 2 tests/sandbox

# The sandbox's tests as an ordinary user, also when we are root.
test-unprivileged: venv
	tests/sandbox/as_nobody.sh $(BIN)/python -m pytest -p no:cacheprovider -n 2 tests/sandbox

# Installs redis-server where it may (root, apt-get); a server of its own on a free port.
test-redis: venv
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get -qq update && apt-get -qq install -y --no-install-recommends redis-server >/dev/null; } 2>/dev/null \
	  || { echo "test-redis: no redis-server or valkey-server here; install one (apt-get install redis-server) and try again"; exit 1; }
	ANPD_TEST_REDIS=1 $(BIN)/pytest -n 2 tests/redis tests/cache

# Runs every escape of the corpus without any sandbox, in throw-away processes.
corpus-control: venv
	$(BIN)/python -m tests.sandbox.corpus.control

kill: venv
	ANPD_KILLS=50 $(BIN)/pytest -s tests/e2e/test_kill.py
	ANPD_TASK_KILLS=35 $(BIN)/pytest -s tests/e2e/test_kill_tasks.py
	ANPD_AGENT_KILLS=20 $(BIN)/pytest -s tests/e2e/test_kill_agents.py

kill-files: venv
	ANPD_FILE_KILLS=10 ANPD_FILE_SIZE=268435456 $(BIN)/pytest -n 0 -s tests/e2e/test_kill_files.py

# One line of JSON for the calm part and one for that with kills, with all figures.
groups: venv
	$(BIN)/python -m tests.crowd

# Three daemons with one identity have the hub; kills of the holder and of sisters.
groups-fleet: venv
	$(BIN)/python -m tests.crowd --fleet --messages 2000

# A part of these runs with the tests.
crossings: venv
	$(BIN)/python -m tests.crossings 2000

walks: venv
	ANPD_WALKS=2000 $(BIN)/pytest -n 0 -s tests/anp/interaction/groups/test_walks.py

# GROUPS="--seal" measures a sealed group; "--members 2 8" two sizes.
bench-groups: venv slim-env
	$(BIN)/python -m bench.groups $(GROUPS)

# A group of 2, 8 and 32 members over that library alone.
bench-slim: venv slim-env
	$(BIN)/python -m bench.groups.slim

bench-files: venv
	$(BIN)/python -m bench.files

long-call: venv
	ANPD_LONG_CALL=600 $(BIN)/pytest -s tests/e2e/test_long_calls.py -k three_times

# A clock of its own runs; nothing waits. `make test` has a selection.
cron-years: venv
	$(BIN)/python -m tests.anp.interaction.triggers.cron_years

# The receiver of push notifications is away for a real minute.
push-minute: venv
	ANPD_MINUTE=1 $(BIN)/pytest -n 0 tests/e2e/test_a2a_push.py -k for_a_minute

# EVERYTHING is dist/index.js of the npm package @modelcontextprotocol/server-everything.
test-everything: venv
	@[ -f "$(EVERYTHING)" ] || { echo "test-everything: no EVERYTHING; npm install @modelcontextprotocol/server-everything and give the path of its dist/index.js"; exit 1; }
	ANPD_EVERYTHING="$(abspath $(EVERYTHING))" $(BIN)/pytest -n 0 -s tests/e2e/test_everything_server.py

obedient: venv
	$(BIN)/python -m tests.attacks_model

# ATTACKS="--only NAME" measures some; "--list" prints them all.
attacks: venv
	$(BIN)/python -m tests.attacks $(ATTACKS)

# SOAK="--seconds 60 --calls 1000" is a short one.
soak: venv
	$(BIN)/python -m tests.soak $(SOAK)

# Takes some minutes; `make test` runs a few hundred of each.
fuzz: venv
	$(BIN)/pytest -s --hypothesis-profile=long tests/negotiation/conversations tests/negotiation/exchange/dialogue/test_two_dialogues.py

# MUTANTS=60 tries fewer; `make test` does.
mutants: venv
	$(BIN)/python -m tests.negotiation.faulty $(MUTANTS)

# Looks for new examples in every property test; CI repeats those it knows.
explore: venv
	$(BIN)/pytest -n 2 --hypothesis-profile=explore $$(grep -rl "from hypothesis" tests --include="test_*.py")

# HOUSE=--static starts no daemons; --list prints all details, --tree measures elsewhere.
# Limits of the code alone; `make house` also traces a call.
house-static: venv
	$(BIN)/python -m tests.house --static

house: venv
	$(BIN)/python -m tests.house $(HOUSE)

# ASSERTIONS="--compare OLD NEW" compares the tests of two checkouts.
assertions: venv
	@$(BIN)/python -m tests.house.assertions $(ASSERTIONS)

clean:
	rm -rf build dist $(VENV) .venvs
