#!/usr/bin/env bash
# From a clean clone to the end of the first elastic run: how many commands, and how many minutes.
# The clone and its environment are in a folder of their own. Packages come from where pip gets them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
[ "${KEEP:-}" = 1 ] || trap 'rm -rf "$place"' EXIT
commands=0
began_s=$(date +%s)

types() {
    commands=$((commands + 1))
    echo "first-run: \$ $*"
    "$@" >"$place/$commands.log" 2>&1 || { tail -20 "$place/$commands.log" >&2; echo "first-run: '$*' failed." >&2; exit 1; }
    echo "first-run:   $(($(date +%s) - began_s)) s since the first command"
}

types git clone --quiet "$root" "$place/penstock"
cd "$place/penstock"
types make demo ARGS="--quiet"
grep -E "^(Prepared|in time|executor-seconds|reconfigurations)" "$place/$commands.log" || true
if ! grep -qE "executors 1 -> [2-9]" "$place/$commands.log"; then
    echo "first-run: the demo ended without scaling out, so this was no elastic run." >&2
    exit 1
fi
took_s=$(($(date +%s) - began_s))
echo "first-run: $(nproc) processors with a load of $(cut -d " " -f 3 /proc/loadavg) over the last 15 minutes"
echo "first-run: $commands commands, $((took_s / 60)) min $((took_s % 60)) s from the clone to the end of the first elastic run"
