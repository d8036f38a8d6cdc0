#!/usr/bin/env bash
# Builds the sdist and the wheel, checks both, and tries the wheel in an environment of its own.
# DEMO=1 also runs `penstock demo` from it; KEEP=1 keeps the environment. Nothing is uploaded.
set -euo pipefail
python=${1:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
[ "${KEEP:-}" = 1 ] || trap 'rm -rf "$place"' EXIT

say() { echo "package: $*"; }

"$python" -m venv "$place/tools"
"$place/tools/bin/pip" install --quiet --disable-pip-version-check \
    --require-hashes --requirement "$root/scripts/package-requirements.txt"
rm -rf "$root/dist"
"$place/tools/bin/python" -m build --outdir "$root/dist" "$root" >"$place/build.log" 2>&1 ||
    { tail -20 "$place/build.log" >&2; say "the build failed"; exit 1; }
"$place/tools/bin/twine" check --strict "$root"/dist/*
wheel=$(ls "$root"/dist/penstock-*.whl)
"$place/tools/bin/python" "$root/scripts/package_contents.py" "$wheel"

said=$(date +%s)
"$python" -m venv "$place/clean"
"$place/clean/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cd "$place" # not where the source is, so that nothing of it is imported by accident
"$place/clean/bin/penstock" --version
"$place/clean/bin/penstock" init "$place/project" >/dev/null
"$place/clean/bin/python" -c "
import penstock, sys
from penstock.dashboard.server import assets
assert penstock.__file__.startswith(sys.prefix), penstock.__file__
assert {'index.html', 'page.js', 'page.css'} <= set(assets())"
say "installed and imported after $(($(date +%s) - said)) s"
if [ "${DEMO:-}" = 1 ]; then
    "$place/clean/bin/penstock" demo --quiet --out "$place/demo"
    say "first elastic run done after $(($(date +%s) - said)) s"
fi
