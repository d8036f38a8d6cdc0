#!/usr/bin/env bash
# Builds docs/ into build/site, in an environment of its own that is made once: it never mixes with ours.
# Any warning fails, a dead link or anchor among them, and so does anything fetched from elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
wanted=scripts/site-requirements.txt
folder=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/site-$(sha256sum "$wanted" | cut -c1-12)

if [ ! -x "$folder/bin/mkdocs" ]; then
    echo "site: installing mkdocs-material in $folder ..." >&2
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$wanted" ||
        { rm -rf "$folder"; echo "site: $wanted could not be installed." >&2; exit 1; }
fi
NO_MKDOCS_2_WARNING=1 PATH="$folder/bin:$PATH" "$folder/bin/mkdocs" --quiet build --strict
if fetched=$(grep -rnoE '(<script[^>]* src|<img[^>]* src|<link[^>]* href)="(https?:)?//[^"]*"' build/site --include='*.html'); then
    echo "site: pages fetch from elsewhere: $fetched" >&2
    exit 1
fi
echo "site: build/site/index.html; search needs a server: python3 -m http.server --directory build/site"
