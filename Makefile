# make help says what there is. Each target installs what it misses (as root on Debian) or says what to install.
# ARGS passes arguments on: make run ARGS="--catalog-addr 127.0.0.1:8282"

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
TOOLS := . tests/support/tools.sh

.DEFAULT_GOAL := help
.PHONY: help run test bench lint

help:   ## this list
	@sed -n 's/^\([a-z]*\): *## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run:    ## build the release and start it on ./data (catalog :8181, S3 :9000)
	@$(TOOLS) && need_cc && cargo build --release --locked
	@exec $(TARGET)/release/tidewater serve --data ./data $(ARGS)

test:   ## everything: unit tests, the real server on SQLite and Postgres, Spark, PyIceberg, Trino, Flink, DuckDB, Iceberg's own kit
	@tests/run $(ARGS)

bench:  ## measure the release beside its floors; prints JSON
	@bench/run $(ARGS)

lint:   ## format, clippy and docs with warnings denied, licences, doubled and unused crates
	@.ci/run lint
