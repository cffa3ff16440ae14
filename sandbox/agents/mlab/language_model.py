"""In the place of MLAgentBench.LLM: its functions, asking the gateway.

The original reads keys from files and imports PyTorch, Hugging Face and tokenizers from the internet. Here are its
parameters of a request (what a model may write, temperature, where it stops) with today's clients.
"""

from functools import cache
from pathlib import Path
from typing import Any

FAST_MODEL = ""
STOP = "Observation:"
RETRIES = 12
"""About a minute and a half: the gateway may be away for a while. Refusals for good are not tried again."""


@cache
def _openai() -> Any:
    import openai

    return openai.OpenAI(max_retries=RETRIES)


@cache
def _anthropic() -> Any:
    import anthropic

    return anthropic.Anthropic(max_retries=RETRIES)


def complete_text(prompt: str, log_file: str, model: str, **options: Any) -> str:
    """What the model writes after the prompt; both are appended to the log file."""
    complete = _complete_claude if model.startswith("claude") else _complete_openai
    completion = complete(prompt, model, **options)
    with Path(log_file).open("a") as log:
        log.write(f"\n===== prompt =====\n{prompt}\n===== {model} =====\n{completion}\n")
    return completion


def complete_text_fast(prompt: str, **options: Any) -> str:
    """Of the model for summaries."""
    return complete_text(prompt=prompt, model=FAST_MODEL, temperature=0.01, **options)


def complete_text_claude(prompt: str, log_file: str, **options: Any) -> str:
    """Imported by MLAgentBench, for dialogues with people."""
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
