#!/usr/bin/env bash
# Fetches a Kafka broker's jars once, with the resolver that pyspark carries, and prints their folder.
# They have to be, byte for byte, those that kafka-jars.sha256 names.
set -euo pipefail
python=$1
sums=$(cd "$(dirname "$0")" && pwd)/kafka-jars.sha256
version=4.1.0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/kafka-$version

if [ ! -d "$folder" ]; then
    resolver=$("$python" -c 'import glob, os, pyspark
print(glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "ivy-*.jar"))[0])')
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    echo "kafka-jars: fetching org.apache.kafka:kafka_2.13:$version and what it needs ..." >&2
    if ! timeout 600 java -jar "$resolver" -cache "$work/cache" \
        -dependency org.apache.kafka kafka_2.13 "$version" -confs default -types jar bundle \
        -retrieve "$work/jars/[artifact]-[revision].[ext]" >"$work/log" 2>&1; then
        echo "kafka-jars: they could not be fetched; the last lines were:" >&2
        tail -n 5 "$work/log" >&2
        exit 1
    fi
    if ! (cd "$work/jars" && sha256sum --check --strict --quiet "$sums") >&2; then
        echo "kafka-jars: what was fetched is not what $sums names; nothing of it is used." >&2
        exit 1
    fi
    mkdir -p "$(dirname "$folder")"
    mv "$work/jars" "$folder"
fi
echo "$folder"
