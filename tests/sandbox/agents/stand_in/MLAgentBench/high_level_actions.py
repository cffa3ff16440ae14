"""Actions that ask a language model."""

from __future__ import annotations

from typing import Any

from .LLM import complete_text, complete_text_fast
from .low_level_actions import read_file, write_file
from .schema import ActionInfo

EDIT_SCRIPT_MODEL = "unset"
EDIT_SCRIPT_MAX_TOKENS = 0


def edit_script(script_name: str, edit_instruction: str, save_name: str, work_dir: str = ".", **kwargs: Any) -> str:
    """Have a model edit a script."""
    prompt = f"Given this python script:\n{read_file(script_name, work_dir)}\nEdit the script: {edit_instruction}"
    completion = complete_text(
        prompt, log_file=kwargs["log_file"], model=EDIT_SCRIPT_MODEL, max_tokens_to_sample=EDIT_SCRIPT_MAX_TOKENS
    )
    content = completion.split("```python")[1].split("```")[0].strip()
    return write_file(save_name, content, work_dir) + "\n" + content


def understand_file(file_name: str, things_to_look_for: str, work_dir: str = ".", **kwargs: Any) -> str:
    """Have a model read a file."""
    prompt = f"Given this file:\n{read_file(file_name, work_dir)}\nlook for: {things_to_look_for}"
    text: str = complete_text_fast(prompt, log_file=kwargs["log_file"])
    return text


HIGH_LEVEL_ACTIONS = [
    ActionInfo("Edit Script (AI)", {"script_name": "", "edit_instruction": "", "save_name": ""}, edit_script),
    ActionInfo("Understand File", {"file_name": "", "things_to_look_for": ""}, understand_file),
]
