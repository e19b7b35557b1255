#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes dist/gpadvisor.vsix: the wheel, the sample with its simulated profile, the bundle. First word: the Python to use.
set -euo pipefail
python=$(realpath -s "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(realpath ..)

rm -rf bundled
mkdir -p bundled/sample
GPADVISOR_CACHE='' "$python" -m gpadvisor.simulator
(cd "$root" && "$python" -m hatchling build -t wheel -d "$root/vscode-client/bundled" >/dev/null)
cp requirements.txt bundled/
"$python" supply.py sbom extension >bundled/sbom.json
cp "$root/LICENSE" "$root/CHANGELOG.md" .

# The profile names the path it was compiled at: one that is the same everywhere and says nothing.
made=${TMPDIR:-/tmp}/gpadvisor-sample
rm -rf "$made"
mkdir -m 700 "$made"
trap 'rm -rf "$made"' EXIT
sed 's, *// planted: .*,,' "$root/fixtures/kernels/thermal_stencil/before.cu" >"$made/thermal_stencil.cu"
cp sample/gpadvisor.toml "$made/"
touch -d @1580601600 "$made"/* # the line table has the source's date
(cd "$made" && GPADVISOR_CACHE='' "$python" -m gpadvisor simulate thermal_stencil.cu -o thermal_stencil.gpadvisor >/dev/null)
cp "$made"/* bundled/sample/

# Where it is published, REPOSITORY is the address that its page and the pictures of the README are to point to.
address=(--allow-missing-repository --no-rewrite-relative-links)
if [[ -n "${REPOSITORY:-}" ]]; then
    cp package.json "$made/package.json"
    trap 'cp "$made/package.json" package.json; rm -rf "$made"' EXIT
    npm pkg set repository.type=git repository.url="$REPOSITORY" bugs.url="$REPOSITORY/issues" homepage="$REPOSITORY"
    address=()
fi
npx --no-install vsce package --no-dependencies "${address[@]}" -o dist/made.vsix
"$python" repack.py dist/made.vsix dist/gpadvisor.vsix
rm dist/made.vsix
