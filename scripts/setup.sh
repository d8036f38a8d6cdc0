#!/usr/bin/env bash
# Makes the virtual environment, and installs Java 17 where there is none, and what only tests need
# (redis-server, Chromium) if that needs no password. Debian and PyPI only.
set -euo pipefail
venv=$1

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "setup: '$*' needs root; run it as root and try again." >&2
        exit 1
    fi
}

need_apt() {
    if ! command -v apt-get >/dev/null; then
        echo "setup: please install $* (this machine has no apt-get), then try again." >&2
        exit 1
    fi
    as_root apt-get update -qq
}

install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# for_tests COMMAND PACKAGE...: without it the tests that need it are skipped and say so, so nothing
# that goes wrong here is a reason to stop.
for_tests() {
    command -v "$1" >/dev/null && return
    if ! command -v apt-get >/dev/null; then
        echo "setup: no $1, and no apt-get to get it with; its tests will be skipped." >&2
    elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        echo "setup: no $1, and no root to install it; its tests will be skipped" \
            "(apt-get install ${*:2})." >&2
    elif ! { as_root apt-get update -qq && install_packages "${@:2}"; } >/dev/null 2>&1; then
        echo "setup: $1 could not be installed; its tests will be skipped." >&2
    fi
}

python=
for candidate in python3.11 python3.12 python3.13 python3; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup: Python 3.11 or later is needed; install it (apt-get install python3) and try again." >&2
    exit 1
fi

if [ -z "${JAVA_HOME:-}" ] && ! command -v java >/dev/null; then
    need_apt "Java 17"
    java=openjdk-17-jre-headless
    # Later Debian releases have 21 instead, which Spark runs on as well.
    apt-cache show "$java" >/dev/null 2>&1 || java=openjdk-21-jre-headless
    install_packages "$java"
fi
for_tests redis-server redis-server
for_tests chromium chromium fonts-dejavu-core
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    need_apt "the venv module of Python"
    install_packages "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
# Every package at the version and with the hash that requirements.lock names, so that a machine set
# up next year gets what was tested; make lock renews it.
# uv takes half the time; pip does the same where uv cannot, as behind an index that only pip knows.
pip_install() { "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
uv_install() { "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }
awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock >"$venv/uv.lock"
pip_install --no-deps --require-hashes --requirement "$venv/uv.lock"
uv_install --compile-bytecode --require-hashes --requirement requirements.lock ||
    pip_install --require-hashes --requirement requirements.lock
pip_install --no-deps --no-build-isolation --editable .
