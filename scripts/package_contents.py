"""What must be in a wheel and what must not: `python scripts/package_contents.py FILE.whl`."""

import sys
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "penstock"
DATA = ("py.typed", "dashboard/grafana.json", "dashboard/alerts.yaml")
FOLDERS = ("dashboard/assets", "cli/starter")
PAGES = ("attach", "options", "how-to/one-hot-key")  # of the documentation, some of many
OWN_DIRECTORIES = ("penstock/", "penstock-")


def complaints(wheel: Path) -> list[str]:
    """What is wrong with a wheel, a sentence each."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (described,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(packed.read(described).decode())
        (entry,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        entries = packed.read(entry).decode()
    wanted = {PACKAGE / name for name in DATA} | set(PACKAGE.rglob("*.py"))
    wanted |= {path for folder in FOLDERS for path in (PACKAGE / folder).iterdir()}
    missing = [path for path in wanted if path.relative_to(PACKAGE.parent).as_posix() not in names]
    found = [f"{path.relative_to(ROOT)} is missing" for path in sorted(missing) if path.is_file()]
    found += [f"the page {page} is missing" for page in PAGES
              if f"penstock/docs/{page}.md" not in names]  # fmt: skip
    found += [f"{name} does not belong" for name in sorted(names)
              if not name.startswith(OWN_DIRECTORIES) or "__pycache__" in name]  # fmt: skip
    for field in (
        "Name",
        "Version",
        "Summary",
        "License-Expression",
        "Requires-Python",
        "Classifier",
    ):
        if not metadata.get(field):
            found.append(f"the metadata lack {field}")
    if "Penstock" not in str(metadata.get_payload()):
        found.append("the metadata have no description")
    if "penstock = penstock.cli:main" not in entries:
        found.append("the command penstock is not declared")
    return found


if __name__ == "__main__":
    (given,) = sys.argv[1:]
    wrong = complaints(Path(given))
    sys.stdout.write("".join(f"{Path(given).name}: {one}\n" for one in wrong or ["complete"]))
    sys.exit(1 if wrong else 0)
