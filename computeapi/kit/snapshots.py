"""What a cloud was at some moment, by name: its database, the data of its images, and what was drawn from its seed."""

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

from computeapi.db.copies import copy_of, put_back
from computeapi.db.engine import Store
from computeapi.errors import Conflict, Invalid, NotFound
from computeapi.kit.seed import Drawn, Seed
from computeapi.serve.directory import Directory, database, removed_with

MOST = 100
LONGEST_NAME = 255
IMAGES = 'images'


class CloudSnapshot:
    """What a cloud was at some moment. When nobody holds it any more, nothing is left of it.

    The data of an image is never written over, so a snapshot of it is another name of the same file.
    """

    def __init__(self, store: Store, images: Path, drawn: Drawn, folder: Path):
        """folder: where names of the data of images may be."""
        self.pages, self.drawn = copy_of(store), drawn
        folder.mkdir(exist_ok=True)
        self.images = Path(tempfile.mkdtemp(dir=folder))
        removed_with(self, self.images)
        _link_all(images, self.images)

    def put_back(self, store: Store, images: Path) -> None:
        """Let the cloud that has these be as it was."""
        put_back(store, self.pages)
        shutil.rmtree(images, ignore_errors=True)
        images.mkdir()
        _link_all(self.images, images)

    def begin(self, directory: Directory) -> None:
        """Let another cloud, which has no database and no images yet, begin with it."""
        with closing(Store(database(directory.path), durable=False)) as store:
            self.put_back(store, directory.path / IMAGES)


class CloudSnapshots:
    """Those of a cloud that is in a directory, by name; who asks for one sees to it that nobody writes meanwhile."""

    def __init__(self, store: Store, directory: Directory, seed: Seed):
        self.store, self.seed = store, seed
        self.images, self.folder = directory.path / IMAGES, directory.path / 'snapshots'
        self.kept: dict[str, CloudSnapshot] = {}

    def list(self) -> list[str]:
        """Their names, the oldest first."""
        return list(self.kept)

    def now(self) -> CloudSnapshot:
        """What is there now."""
        return CloudSnapshot(self.store, self.images, self.seed.drawn, self.folder)

    def take(self, name: str) -> None:
        """Keep what is there now; Conflict if the name is taken, Invalid if it is none or there are too many."""
        if not name or len(name) > LONGEST_NAME:
            raise Invalid(f'The name of a snapshot has 1 to {LONGEST_NAME} characters.')
        if name in self.kept:
            raise Conflict(f'Snapshot {name} already exists.')
        if len(self.kept) >= MOST:
            raise Invalid(f'There are {MOST} snapshots, and no room for more.')
        self.kept[name] = self.now()

    def get(self, name: str) -> CloudSnapshot:
        """The one of that name; NotFound."""
        if name not in self.kept:
            raise NotFound(f'There is no snapshot {name}.')
        return self.kept[name]

    def restore(self, name: str) -> None:
        """Let everything be as it was then; NotFound."""
        snapshot = self.get(name)
        snapshot.put_back(self.store, self.images)
        self.seed.drawn = snapshot.drawn

    def delete(self, name: str) -> None:
        """Forget it; NotFound."""
        self.get(name)
        del self.kept[name]


def _link_all(source: Path, target: Path) -> None:
    if source.is_dir():
        for path in source.iterdir():
            os.link(path, target / path.name)
