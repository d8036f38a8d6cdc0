"""What was submitted, on disk: whole or not at all, and there again after a kill -9.

Layout below the host's folder: `submissions/NAME.json` is what was submitted, and
`topologies/NAME/` holds its code, its checkpoint and its log. All of it is private, and JSON.
"""

from contextlib import ExitStack
from pathlib import Path

from penstock.errors import InvalidInput, Unavailable
from penstock.spark.checkpoint.durable_files import (
    exclusive,
    make_directory,
    remove,
    remove_tree,
    write_atomically,
)
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.host.submission import Submission, read_submission


class Registry:
    """The submissions of a host, held under an exclusive lock while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._submissions = self.folder / "submissions"
        self._held = ExitStack()

    def __enter__(self) -> "Registry":
        try:
            for made in (self.folder, self._submissions, self.folder / "topologies"):
                make_directory(made)
            self._held.enter_context(exclusive(self.folder / "lock", wait=False))
        except BlockingIOError as error:
            raise Unavailable(f"a host runs in {self.folder} already.") from error
        except OSError as error:
            raise InvalidInput(
                f"--directory {self.folder} cannot be used: {error.strerror}."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def submissions(self) -> tuple[list[Submission], list[str]]:
        """All that are kept, and a sentence for each that cannot be read: it harms no other."""
        found, damaged = list[Submission](), list[str]()
        for file in sorted(self._submissions.glob("*.json")):
            try:
                found.append(read_submission(read_sealed(file)))
            except (InvalidInput, OSError, ValueError) as error:
                damaged.append(f"{file}: {error}")
        return found, damaged

    def keep(self, submission: Submission) -> None:
        """From here on it comes back by itself; the record holds its code too."""
        write_atomically(self._record(submission.name), submission.document())

    def unpack(self, submission: Submission) -> Path:
        """The files of each part in a folder of their own, as they were submitted."""
        code = self.code(submission.name)
        remove_tree(code)
        for part in submission.parts:
            for path, text in part.files.items():
                file = code / part.name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        return code

    def forget(self, name: str) -> None:
        """It does not come back; its checkpoint and its log stay for whoever wants them."""
        if self._record(name).exists():
            remove(self._record(name))

    def code(self, name: str) -> Path:
        """The folder of its files."""
        return self.folder / "topologies" / name / "code"

    def checkpoint(self, name: str) -> Path:
        """Where it goes on from."""
        return self.folder / "topologies" / name / "checkpoint"

    def log_file(self, name: str) -> Path:
        """What its loop and its failures say."""
        return self.folder / "topologies" / name / "log"

    def _record(self, name: str) -> Path:
        return self._submissions / f"{name}.json"
