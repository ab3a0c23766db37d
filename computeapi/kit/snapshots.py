"""What a cloud was at some moment, by name: its database, the data of its images, and what was drawn from its seed."""

import hashlib
import os
import shutil
from pathlib import Path

from computeapi.db.copies import Copy, copy_of, put_back
from computeapi.db.engine import Store
from computeapi.errors import Conflict, Invalid, NotFound
from computeapi.kit.seed import Drawn, Seed
from computeapi.serve.directory import Directory, database

MOST = 100
LONGEST_NAME = 255


class CloudSnapshots:
    """Those of a cloud that is in a directory; who asks for one sees to it that nobody writes meanwhile.

    The data of an image is never written over, so a snapshot of it is another name of the same file.
    """

    def __init__(self, store: Store, directory: Directory, seed: Seed):
        self.store, self.seed = store, seed
        self.images, self.folder = directory.path / 'images', directory.path / 'snapshots'
        self.copies: dict[str, Copy] = {}
        self.drawn: dict[str, Drawn] = {}

    def list(self) -> list[str]:
        """Their names, the oldest first."""
        return list(self.copies)

    def take(self, name: str) -> None:
        """Keep what is there now; Conflict if the name is taken, Invalid if it is none or there are too many."""
        if not name or len(name) > LONGEST_NAME:
            raise Invalid(f'The name of a snapshot has 1 to {LONGEST_NAME} characters.')
        if name in self.copies:
            raise Conflict(f'There is a snapshot {name} already.')
        if len(self.copies) >= MOST:
            raise Invalid(f'There are {MOST} snapshots, and no room for more.')
        self.copies[name], self.drawn[name] = copy_of(self.store), self.seed.drawn
        _link_all(self.images, self._folder_of(name))

    def restore(self, name: str) -> None:
        """Let everything be as it was then; NotFound."""
        put_back(self.store, self._copy(name))
        self.seed.drawn = self.drawn[name]
        shutil.rmtree(self.images, ignore_errors=True)
        _link_all(self._folder_of(name), self.images)

    def delete(self, name: str) -> None:
        """Forget it; NotFound."""
        self._copy(name)
        shutil.rmtree(self._folder_of(name), ignore_errors=True)
        del self.copies[name], self.drawn[name]

    def begin(self, name: str, directory: Directory) -> None:
        """Let another cloud, which has no database and no images yet, begin with it; NotFound."""
        store = Store(database(directory.path), durable=False)
        try:
            put_back(store, self._copy(name))
        finally:
            store.close()
        _link_all(self._folder_of(name), directory.path / 'images')

    def _copy(self, name: str) -> Copy:
        if name not in self.copies:
            raise NotFound(f'There is no snapshot {name}.')
        return self.copies[name]

    def _folder_of(self, name: str) -> Path:
        # The name is the user's, and may be more to a file system, or longer than it likes.
        return self.folder / hashlib.sha256(name.encode()).hexdigest()


def _link_all(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    if source.is_dir():
        for path in source.iterdir():
            os.link(path, target / path.name)
