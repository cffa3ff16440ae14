#!/usr/bin/env bash
# Make sure that a Docker engine is running: install it from Debian if it is missing, and start dockerd. Does nothing if an
# engine answers already. Needs root. Meant for CI and trials; for other machines, follow Docker's installation guide.
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
# The output of the shell that waits for dockerd is redirected, too: otherwise a pipe behind this script stays open.
{ answers || setsid dockerd; } > "$log" 2>&1 < /dev/null &
for _ in $(seq 120); do
    answers && exit 0
    sleep 0.5
done
echo "docker_engine.sh: dockerd did not come up; the end of $log:" >&2
tail -n 5 "$log" >&2
exit 1
