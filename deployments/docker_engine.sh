#!/usr/bin/env bash
# Make sure that a Docker engine answers: install it from Debian and start dockerd where there is none. For CI and trials,
# as root; elsewhere install Docker as its makers say. Does nothing if an engine answers already.
#
#     deployments/docker_engine.sh [LOG]
set -euo pipefail
log=${1:-${TMPDIR:-/tmp}/dockerd.log}

answers() { docker version --format '{{.Server.Version}}' 2> /dev/null | grep -q .; }

if command -v docker > /dev/null && answers; then
    exit 0
fi
if ! command -v dockerd > /dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io iptables > /dev/null
fi
answers || setsid dockerd > "$log" 2>&1 < /dev/null &
for _ in $(seq 120); do
    answers && exit 0
    sleep 0.5
done
echo "docker_engine.sh: dockerd did not come up; the end of $log:" >&2
tail -n 5 "$log" >&2
exit 1
