# Everything here works on a fresh clone with python3 (with venv), make and git.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SDK    := .venvs/sdk
STAMP  := $(VENV)/.installed
PIP    := -m pip --disable-pip-version-check -q

.PHONY: help venv demo test check format lint types contracts wheel sdk-env bench bench-long corpus-control test-sandbox test-unprivileged kill fuzz explore clean

help:
	@echo "make demo    two daemons meet, agree and call (start here)"
	@echo "make test    all tests, with the official SDK as a peer"
	@echo "make check   format, lint, types, import contracts, tests, wheel"
	@echo "make bench   ratios: a call against a raw echo, the sandbox's goals (bench-long: 100,000 calls)"
	@echo "make kill    fifty kills on each side, at named states"
	@echo "make explore new examples for every property test (make test repeats known ones)"
	@echo "make fuzz    10,000 generated conversations between two sides, and counts"

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install -c constraints.txt -e '.[dev]'
	touch $(STAMP)

# The official SDK also imports as `anp`, so it lives in an environment of its own.
sdk-env: $(SDK)/.installed

$(SDK)/.installed: tests/sdk/requirements.txt
	test -x $(SDK)/bin/python || $(PYTHON) -m venv $(SDK)
	$(SDK)/bin/python $(PIP) install -r tests/sdk/requirements.txt
	touch $@

demo: venv
	$(BIN)/anpd demo

test: venv sdk-env
	$(BIN)/pytest -n 2

check: venv sdk-env format lint types contracts test wheel

format: venv
	$(BIN)/ruff format --check .

lint: venv
	$(BIN)/ruff check .

types: venv
	$(BIN)/mypy

contracts: venv
	$(BIN)/lint-imports

# The wheel is built, installed into an environment of its own and imported from there.
wheel: venv
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel . > build/wheel/log.txt 2>&1 || (cat build/wheel/log.txt; exit 1)
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python $(PIP) install -c constraints.txt build/wheel/*.whl
	cd build/wheel && venv/bin/python -I -c "import anp.cli, negotiation, sandbox, cache; print('wheel imports')"
	cd build/wheel && venv/bin/anpd --version

bench: venv
	$(BIN)/python -m bench.call
	$(BIN)/python -m bench.sandbox

bench-long: venv
	$(BIN)/python -m bench.sandbox --long

# The sandbox's tests with another Python, such as PYTHON=python3.13.
test-sandbox:
	$(MAKE) VENV=.venvs/$(notdir $(PYTHON)) venv
	.venvs/$(notdir $(PYTHON))/bin/pytest -n 2 tests/sandbox

# The sandbox's tests as an ordinary user, also when we are root.
test-unprivileged: venv
	tests/sandbox/as_nobody.sh $(BIN)/python -m pytest -p no:cacheprovider -n 2 tests/sandbox

# Runs every escape of the corpus without any sandbox, in throw-away processes.
corpus-control: venv
	$(BIN)/python -m tests.sandbox.corpus.control

kill: venv
	ANPD_KILLS=50 $(BIN)/pytest -s tests/e2e/test_kill.py

# Takes some minutes; `make test` runs a few hundred of each.
fuzz: venv
	$(BIN)/pytest -s --hypothesis-profile=long tests/negotiation/conversations tests/negotiation/dialogue/test_two_dialogues.py

# Looks for new examples in every property test; CI repeats those it knows.
explore: venv
	$(BIN)/pytest -n 2 --hypothesis-profile=explore $$(grep -rl "from hypothesis" tests --include="test_*.py")

clean:
	rm -rf build dist $(VENV) .venvs
