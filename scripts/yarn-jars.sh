#!/usr/bin/env bash
# Fetches the jars of a YARN cluster and of HDFS once, with the resolver that pyspark carries, and prints their folder.
# They have to be, byte for byte, those that yarn-jars.sha256 names.
set -euo pipefail
python=$1
sums=$(cd "$(dirname "$0")" && pwd)/yarn-jars.sha256
version=3.4.2
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/yarn-$version

if [ ! -d "$folder" ]; then
    resolver=$("$python" -c 'import glob, os, pyspark
print(glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "ivy-*.jar"))[0])')
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    {
        echo '<ivy-module version="2.0"><info organisation="penstock" module="yarn"/><dependencies>'
        for module in common hdfs yarn-server-resourcemanager yarn-server-nodemanager yarn-server-timelineservice; do
            echo "<dependency org=\"org.apache.hadoop\" name=\"hadoop-$module\" rev=\"$version\" conf=\"default->default\"/>"
        done
        echo '</dependencies></ivy-module>'
    } >"$work/ivy.xml"
    echo "yarn-jars: fetching ResourceManager, NodeManager, NameNode and DataNode $version and what they need ..." >&2
    if ! timeout 900 java -jar "$resolver" -cache "$work/cache" -ivy "$work/ivy.xml" -confs default -types jar bundle \
        -retrieve "$work/jars/[artifact]-[revision](-[classifier]).[ext]" >"$work/log" 2>&1; then
        echo "yarn-jars: they could not be fetched; the last lines were:" >&2
        tail -n 5 "$work/log" >&2
        exit 1
    fi
    if ! (cd "$work/jars" && sha256sum --check --strict --quiet "$sums") >&2; then
        echo "yarn-jars: what was fetched is not what $sums names; nothing of it is used." >&2
        exit 1
    fi
    mkdir -p "$(dirname "$folder")"
    mv "$work/jars" "$folder"
fi
echo "$folder"
