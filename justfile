# The commands of a working day. `just` lists them; `just ci` is what every change must pass.

# Features of the release archives, used by all commands so that they share one build.
features := "--features tensorwright-cli/fleet"

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the commands.
default:
    @just --list

# Type-check everything, tests included.
check:
    cargo check --workspace --all-targets {{ features }}

# Run all tests, then the examples in the documentation. Arguments go to nextest: `just test ranges`.
test *args:
    cargo nextest run --workspace --tests {{ features }} {{ args }}
    cargo test --workspace --doc {{ features }}

# Format the sources.
fmt:
    cargo fmt --all

# The lints that CI denies.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets {{ features }} -- -D warnings

# Build the documentation; `just doc --open` shows it.
doc *args:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps {{ args }}

# Check and explain the example kernels.
examples:
    .ci/run examples

# Check that the golden files are what their script computes, and untuned schedules those in tests/plans.
golden:
    .ci/run golden

# Write the untuned schedules and predicted cycles of all programs to tests/plans; `just plans --check` compares.
plans *args:
    cargo xtask plans {{ args }}

# Run everything in the guide, build it, and compare the gallery with its peers; needs the Python package and mdbook.
guide:
    python3 examples/gallery/check.py
    python3 guide/test.py

# Feed mutated inputs to whatever reads them: `just fuzz --target npy --count 1000000 --seed 7`.
fuzz *args:
    cargo xtask fuzz {{ args }}

# All fuzzers for hours: `just campaign --hours 8`; `just campaign --hours 8 --resume` goes on.
campaign *args:
    cargo xtask campaign {{ args }}

# Accept the snapshots that the tests now produce; review them as a diff.
bless *args:
    INSTA_UPDATE=always cargo nextest run --workspace --tests {{ features }} {{ args }}
    git diff --stat -- '*.snap'

# Licences, duplicate versions and sources of the dependencies.
deny:
    .ci/run deny

# Everything that a change must pass, or only the steps named: `just ci format clippy`.
ci *steps:
    .ci/run {{ steps }}
