#!/usr/bin/env bash
# Makes an environment with apache-flink once, and prints its Python. It never mixes with ours.
set -euo pipefail
python=$1
version=2.3.0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/flink-$version

if [ ! -x "$folder/bin/python" ]; then
    work=$folder.new
    rm -rf "$work"
    echo "flink-env: installing apache-flink $version; this takes minutes ..." >&2
    if ! { "$python" -m venv "$work" && "$work/bin/pip" install --quiet "apache-flink==$version"; } >&2; then
        echo "flink-env: apache-flink $version could not be installed." >&2
        rm -rf "$work"
        exit 1
    fi
    mv "$work" "$folder"
fi
echo "$folder/bin/python"
