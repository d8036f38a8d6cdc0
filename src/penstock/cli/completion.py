"""`penstock completion`: what a shell needs to complete commands, options and names of policies.

The script and what answers it are typer's own, from the same declarations as the help.
"""

from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli.exit_codes import COMPLETE_VAR


class Shell(StrEnum):
    """Shells that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that makes a shell complete commands, options and names of policies.

    bash: into ~/.local/share/bash-completion/completions/penstock. zsh: into a file _penstock of a
    folder of $fpath. fish: into ~/.config/fish/completions/penstock.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="penstock", complete_var=COMPLETE_VAR, shell=shell.value))
