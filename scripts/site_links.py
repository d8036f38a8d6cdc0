"""A hook of mkdocs: links that leave docs/ become the path's name, as the site holds only docs/."""

import re
from pathlib import PurePosixPath
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Called for each page; a link to another page stays as it is."""
    depth = len(PurePosixPath(page.file.src_uri).parts) - 1

    def named(link: re.Match[str]) -> str:
        text, target = link.groups()
        inside = target.count("../") <= depth
        return link.group() if inside else f"{text} (`{target.replace('../', '')}`)"

    return _LINK.sub(named, markdown)
