#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a folder with the wheels that the packaged wheel needs, in the cache folder; the network is asked only where
# the declared versions or the Python are new. First word: the Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${GPADVISOR_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpadvisor-e2e}
wheels=(bundled/*.whl)
# What the wheel itself asks for, as the folder would else outlive a change of it.
asked=$("$1" - "${wheels[0]}" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = wheel.read(name).decode().splitlines()
print(sys.version_info[:2], *sorted(line for line in lines if line.startswith("Requires-")), sep="\n")
PYTHON
)
key=$( (echo "$asked" && cat bundled/requirements.txt) | cksum | cut -d' ' -f1)
folder=$cache/wheels-$key
if [[ ! -d "$folder" ]]; then
    echo "e2e: downloading the wheels that the extension's environment is made of" >&2
    mkdir -p "$cache"
    made=$(mktemp -d "$cache/wheels.XXXXXX")
    trap 'rm -rf "$made"' EXIT
    "$1" -m pip download --disable-pip-version-check --no-input --quiet --only-binary :all: --require-hashes \
        -d "$made" -r bundled/requirements.txt >&2
    find "$cache" -maxdepth 1 -name 'wheels-*' -mtime +7 -exec rm -rf {} +
    mv "$made" "$folder"
fi
echo "$folder"
