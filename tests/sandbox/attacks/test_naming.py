"""Finding out which competition it is, in a run that is not to know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.sandbox.attacks.conftest import Hostile, python

NAME = "leaf-classification"
SEARCH = """
    import os, socket, subprocess
    places = ["/proc/self/mountinfo", "/proc/self/environ", "/proc/self/cgroup", "/etc/hosts", "/etc/hostname",
              "/etc/resolv.conf", os.environ["INSTRUCTIONS_FILE"]]
    home = os.environ["HOME"]
    places += [os.path.join(root, name) for root, _, names in os.walk(home) for name in names]
    for place in places:
        with open(place, errors="replace") as file:
            print(place, file.read())
    print([os.path.join(root, name) for root, names, _ in os.walk(home) for name in names])
    for name in ("services", socket.gethostname()):
        try:
            print(socket.gethostbyaddr(socket.gethostbyname(name)))
        except OSError as error:
            print(error)
    print("searched")
"""


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A dataset in a folder with the name of its competition, as in a store."""
    public = tmp_path / "prepared" / "v1" / NAME / "key" / "public"
    (public / "images").mkdir(parents=True)
    (public / "description.md").write_text(f"# {NAME}")
    (public / "description_full.md").write_text(f"# {NAME}")
    (public / "sample_submission.csv").write_text("id\n1\n")
    (public / "images" / "1.png").write_bytes(b"pixels")
    return public.parent


def test_mounts_names_of_containers_and_files_of_an_obfuscated_run(hostile: Hostile, prepared: Path) -> None:
    change = {"competition_id": NAME, "obfuscated": True, "description": "# Something\n"}
    spec = hostile.spec(python(SEARCH), change=change)
    spec = replace(spec, run_id=f"group-{NAME}-0", workdir=spec.workdir.parent / "0123")
    done = hostile.finish(spec)
    assert done.lines[-1] == "searched"
    assert done.log.count("# Something") == 2
    assert "pixels" in done.log
    assert NAME not in done.log
    assert (prepared / "public" / "description.md").read_text() == f"# {NAME}"
    assert (prepared / "public" / "images" / "1.png").read_bytes() == b"pixels"
    hostile.backend.discard(done.handle)
    assert not spec.workdir.exists()
    assert (prepared / "public" / "images" / "1.png").read_bytes() == b"pixels"


def test_changing_the_shared_data_of_an_obfuscated_run(isolated: Hostile, prepared: Path) -> None:
    """The copy can consist of links to the originals."""
    script = """
        chmod 666 "$DATA_DIR/images/1.png"; echo x >"$DATA_DIR/images/1.png"; rm -f "$DATA_DIR/images/1.png"
        ln "$DATA_DIR/images/1.png" "$HOME/tmp/x" && echo y >"$HOME/tmp/x"; true
    """
    isolated.run(script, change={"competition_id": NAME, "obfuscated": True, "description": "# Something\n"})
    assert (prepared / "public" / "images" / "1.png").read_bytes() == b"pixels"


def test_messages_of_the_validation_service_name_no_competition() -> None:
    """They are texts of the graders and of the checks that these share."""
    from competitions import registry
    from competitions.scoring import checks

    shared = [path.read_text("utf-8") for path in Path(str(checks.__file__)).parent.glob("*.py")]
    for competition_id in registry.list():
        grader = registry.get(competition_id).folder / "grade.py"
        assert not [text for text in (*shared, grader.read_text("utf-8")) if f'"{competition_id}' in text], grader
