#!/usr/bin/env bash
# Makes a server with the interface of S3 (moto, in an environment of its own) once, with the jars that let Spark's
# Hadoop use it, and prints their folder. The jars have to be, byte for byte, those that s3-jars.sha256 names.
set -euo pipefail
python=$1
sums=$(cd "$(dirname "$0")" && pwd)/s3-jars.sha256
hadoop=3.5.0 # of pyspark's own jars
sdk=2.35.4   # which that Hadoop is built for; its bundle of all services has 641 MB, these modules 18
accelerator=1.3.1
moto=5.2.5
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/s3-$hadoop

if [ ! -d "$folder" ]; then
    resolver=$("$python" -c 'import glob, os, pyspark
print(glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "ivy-*.jar"))[0])')
    work=$folder.new
    rm -rf "$work"
    mkdir -p "$work"
    {
        echo '<ivy-module version="2.0"><info organisation="penstock" module="s3"/><dependencies>'
        echo "<dependency org=\"org.apache.hadoop\" name=\"hadoop-aws\" rev=\"$hadoop\" conf=\"default->master\" transitive=\"false\"/>"
        for module in s3 s3-transfer-manager sts; do
            echo "<dependency org=\"software.amazon.awssdk\" name=\"$module\" rev=\"$sdk\" conf=\"default->default\"/>"
        done
        echo "<dependency org=\"software.amazon.s3.analyticsaccelerator\" name=\"analyticsaccelerator-s3\" rev=\"$accelerator\" conf=\"default->default\"/>"
        echo '</dependencies></ivy-module>'
    } >"$work/ivy.xml"
    echo "s3-env: fetching hadoop-aws $hadoop, the client of S3 $sdk and moto $moto ..." >&2
    if ! timeout 900 java -jar "$resolver" -cache "$work/cache" -ivy "$work/ivy.xml" -confs default -types jar bundle \
        -retrieve "$work/jars/[artifact]-[revision](-[classifier]).[ext]" >"$work/log" 2>&1; then
        echo "s3-env: the jars could not be fetched; the last lines were:" >&2
        tail -n 5 "$work/log" >&2
        exit 1
    fi
    if ! (cd "$work/jars" && sha256sum --check --strict --quiet "$sums") >&2; then
        echo "s3-env: what was fetched is not what $sums names; nothing of it is used." >&2
        exit 1
    fi
    if ! { "$python" -m venv "$work/env" && "$work/env/bin/pip" install --quiet "moto[s3]==$moto" flask flask-cors; } >&2; then
        echo "s3-env: moto $moto could not be installed." >&2
        exit 1
    fi
    rm -rf "$work/cache"
    mv "$work" "$folder"
fi
echo "$folder"
