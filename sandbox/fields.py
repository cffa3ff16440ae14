"""Read ``agent.yaml``, which may be hostile, into plain fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from common import trees
from common.errors import UserError, invalid_yaml
from common.texts import decoded, typed_wrong
from sandbox.errors import AgentError

MAX_BYTES = 256 * 1024
MAX_ALIASES = 20
"""Maximum number of aliases in a file. Aliases can contain each other, so a few more could fill the memory."""


class _Loader(yaml.SafeLoader):
    """A loader that counts aliases."""

    aliases = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > MAX_ALIASES:
                raise yaml.MarkedYAMLError(
                    problem=f"more than {MAX_ALIASES} aliases", problem_mark=self.peek_event().start_mark
                )
        return super().compose_node(parent, index)


def read_fields(folder: Path, name: str) -> dict[str, Any]:
    """The fields of an agent's definition.

    Args:
        folder: the agent's folder.
        name: name of the definition.

    Raises:
        AgentError: there is no such file, or it is not a mapping.
    """
    path = folder / name
    try:
        with trees.opened_below(folder, Path(name)) as file:
            content = b"".join(trees.pieces(file, MAX_BYTES + 1))
        if len(content) > MAX_BYTES:
            raise AgentError(f"{path} is larger than {MAX_BYTES // 1024} KiB")
        text = decoded(content, str(path))
        fields = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe loader
    except FileNotFoundError:
        raise AgentError(f"{folder} is not an agent: it has no {name}") from None
    except trees.NotRegular as error:
        raise AgentError(f"{folder}: {error}; an agent consists of regular files and folders only") from None
    except OSError as error:
        raise AgentError(f"{path} cannot be read: {error}") from None
    except UserError as error:  # it is no text, or too large
        raise AgentError(str(error)) from None
    except yaml.YAMLError as error:
        raise AgentError(f"{path} is {invalid_yaml(error)}{typed_wrong(text)}") from None
    except RecursionError:
        raise AgentError(f"{path} is nested too deeply") from None
    except (ValueError, TypeError, AttributeError) as error:  # e.g. a date that does not exist
        raise AgentError(f"{path} has a value that cannot be read: {error}") from None
    if not isinstance(fields, dict):
        raise AgentError(f"{path} must contain fields such as `description:`, not {type(fields).__name__}")
    return fields
