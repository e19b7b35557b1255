#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make e2e: what is needed, the packaged extension, all runs. Without a browser and the right to install one it is
# skipped with the reason; where CI is set that is a failure. First word: the Python that runs the language server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHON=$(realpath -s "$1")
export PYTHON
shift

status=0
found=$(vscode-client/e2e/setup.sh) || status=$?
if [[ $status == 77 && -z "${CI:-}" ]]; then
    echo "skipped: e2e (the reason is above)"
    exit 0
elif [[ $status != 0 ]]; then
    exit 1
fi
while IFS='=' read -r name value; do
    export "$name=$value"
done <<<"$found"

make --no-print-directory vsix # as users make it; its result is what is installed
export VSIX=$PWD/vscode-client/dist/gpadvisor.vsix
WHEELS=$(vscode-client/e2e/wheels.sh "$PYTHON")
export WHEELS
exec node vscode-client/e2e/run.mjs "$@"
