#!/usr/bin/env bash
# Build a replacement for python:3.12-slim on a machine without access to an image registry: Debian with its own Python,
# made by debootstrap.
#
#     deployments/base_image.sh [TAG]      then: mlebench build base --base TAG
#
# Needs root, debootstrap and a Docker engine. Does nothing if the image already exists.
set -euo pipefail
tag=${1:-mlebench-debian:bookworm}
suite=${tag##*:}

docker image inspect "$tag" > /dev/null 2>&1 && exit 0
if ! command -v debootstrap > /dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap > /dev/null
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# git and curl for agents; the rest is Python.
if ! debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,curl,git "$suite" "$folder/root" \
    > "$folder/log" 2>&1; then
    echo "base_image.sh: debootstrap failed:" >&2
    tail -n 5 "$folder/log" >&2
    exit 1
fi
rm -rf "$folder"/root/var/cache/apt/archives/*.deb "$folder"/root/var/lib/apt/lists/* "$folder/root/usr/share/doc"
tar --create --directory "$folder/root" . | docker import --change 'CMD ["bash"]' - "$tag" > /dev/null
