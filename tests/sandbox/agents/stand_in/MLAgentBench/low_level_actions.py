"""Actions that ask no language model."""

from __future__ import annotations

import os
import selectors
import subprocess
from typing import Any

from .schema import ActionInfo, EnvException


def list_files(dir_path: str, work_dir: str = ".", **_: Any) -> str:
    """The names in a folder, as `ls -F` prints them."""
    where = os.path.join(work_dir, dir_path)  # noqa: PTH118
    if not os.path.abspath(where).startswith(os.path.abspath(work_dir)):  # noqa: PTH100
        raise EnvException(f"cannot access file {dir_path} because it is not in the work directory.")
    try:
        return subprocess.check_output(["ls", "-F", where], text=True)
    except subprocess.CalledProcessError:
        raise EnvException(f"Cannot list file in the {dir_path} directory") from None


def read_file(file_name: str, work_dir: str = ".", **_: Any) -> str:
    """The content of a file."""
    with open(os.path.join(work_dir, file_name)) as file:  # noqa: PTH118, PTH123
        return file.read()


def write_file(file_name: str, content: str, work_dir: str = ".", **_: Any) -> str:
    """Write a file."""
    with open(os.path.join(work_dir, file_name), "w") as file:  # noqa: PTH118, PTH123
        file.write(content)
    return f"File {file_name} written successfully."


def execute_script(script_name: str, work_dir: str = ".", **kwargs: Any) -> str:
    """The output of a script; both of its streams are printed line by line."""
    command = f"CUDA_VISIBLE_DEVICES={kwargs['device']} {kwargs['python']} -u {script_name}"
    piped: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, shell=True, cwd=work_dir, **piped)
    lines: dict[Any, list[str]] = {process.stdout: [], process.stderr: []}

    def take(stream: Any, line: str) -> None:
        print("STDOUT:" if stream is process.stdout else "STDERR:", line, end=" ")
        lines[stream].append(line)

    selector = selectors.DefaultSelector()
    for stream in lines:
        selector.register(stream, selectors.EVENT_READ)
    while process.poll() is None and selector.get_map():
        for key, _ in selector.select(timeout=1):
            take(key.fileobj, key.fileobj.readline())
    for stream in lines:
        for line in stream:
            take(stream, line)
    output, errors = ("".join(each) for each in lines.values())
    observation = errors if process.returncode != 0 else output or errors
    return f"The script has been executed. Here is the output:\n{observation}"


LOW_LEVEL_ACTIONS = [
    ActionInfo("List Files", {"dir_path": "a folder"}, list_files),
    ActionInfo("Read File", {"file_name": "a file"}, read_file),
    ActionInfo("Write File", {"file_name": "a file", "content": "its content"}, write_file),
    ActionInfo("Execute Script", {"script_name": "a file"}, execute_script),
    ActionInfo("Final Answer", {"final_answer": "the answer"}, lambda **_: ""),
    ActionInfo("Request Help", {"request": "what for"}, lambda request, **_: input(request)),
]
