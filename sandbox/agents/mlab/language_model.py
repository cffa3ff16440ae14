"""A replacement for MLAgentBench.LLM: the same functions, with the gateway as the provider.

The original reads API keys from files, imports PyTorch and Hugging Face, and downloads tokenizers. This module has the
same request parameters (maximum length, temperature, stop sequences) with current clients.
"""

from functools import cache
from pathlib import Path
from typing import Any

FAST_MODEL = ""
STOP = "Observation:"
RETRIES = 12
"""About 90 seconds in total, as the gateway may be restarting. Permanent errors are not retried."""


@cache
def _openai() -> Any:
    import openai

    return openai.OpenAI(max_retries=RETRIES)


@cache
def _anthropic() -> Any:
    import anthropic

    return anthropic.Anthropic(max_retries=RETRIES)


def complete_text(prompt: str, log_file: str, model: str, **options: Any) -> str:
    """The model's completion of the prompt. Both are appended to the log file."""
    complete = _complete_claude if model.startswith("claude") else _complete_openai
    completion = complete(prompt, model, **options)
    with Path(log_file).open("a") as log:
        log.write(f"\n===== prompt =====\n{prompt}\n===== {model} =====\n{completion}\n")
    return completion


def complete_text_fast(prompt: str, **options: Any) -> str:
    """The completion of the model for summaries."""
    return complete_text(prompt=prompt, model=FAST_MODEL, temperature=0.01, **options)


def complete_text_claude(prompt: str, log_file: str, **options: Any) -> str:
    """The completion of Claude. MLAgentBench imports this function for interactive use."""
    return complete_text(prompt, log_file, "claude-3-5-sonnet-20240620", **options)


def _complete_openai(prompt: str, model: str, max_tokens_to_sample: int = 500, temperature: float = 0.2) -> str:
    answer = _openai().chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": prompt}],
        max_tokens=max_tokens_to_sample,
        temperature=temperature,
        stop=[STOP],
    )
    return answer.choices[0].message.content or ""


def _complete_claude(prompt: str, model: str, max_tokens_to_sample: int = 2000, temperature: float = 0.5) -> str:
    answer = _anthropic().messages.create(
        model=model,
        messages=[{"role": "user", "content": prompt}],
        max_tokens=max_tokens_to_sample,
        temperature=temperature,
        stop_sequences=["\n\nHuman:", STOP],
    )
    return "".join(part.text for part in answer.content if part.type == "text")
