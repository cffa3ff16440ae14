"""Build the image of the pipeline from a checkout.

    python -m deployments.image [--base IMAGE] [--tag NAME]

Equivalent to `docker build --file deployments/Dockerfile .`, but the build uses the package index and certificates that
are configured on this machine. They do not become part of the image.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from sandbox.docker.build import build
from sandbox.errors import BackendError

ROOT = Path(__file__).parents[1]
TAG = f"mlebench:{version('mlebench-pipeline')}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the image of the pipeline from a checkout.")
    parser.add_argument("--base", help="image with Python 3.11 to build on (default: the Dockerfile's)")
    parser.add_argument("--tag", default=TAG, help=f"name of the image (default: {TAG})")
    options = parser.parse_args(arguments)
    dockerfile = Path(__file__).with_name("Dockerfile")
    if not (ROOT / "requirements.txt").is_file() or not dockerfile.is_file():
        print(f"image: {ROOT} is not a checkout of the project, which the build needs", file=sys.stderr)  # noqa: T201
        return 1
    try:
        build(ROOT, options.tag, {"BASE": options.base} if options.base else {}, print, dockerfile)
    except BackendError as error:
        print(f"image: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"image: {options.tag} is built")  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
