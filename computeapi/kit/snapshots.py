"""Named snapshots of a cloud: its database, the data of its images, the draws of its seed, and known passwords."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from computeapi.db.copies import copy_of, put_back
from computeapi.db.engine import Store
from computeapi.errors import Conflict, Invalid, NotFound
from computeapi.kit.accounts import KnownAccounts
from computeapi.kit.seed import Drawn, Seed
from computeapi.serve.directory import Directory, database, removed_with

if TYPE_CHECKING:
    from computeapi.kit.cloud_files.accounts import UserAccount

MAX_SNAPSHOTS = 100
MAX_NAME_LENGTH = 255
IMAGES = 'images'


class CloudSnapshot:
    """The state of a cloud at some moment. Its files are deleted when nothing refers to it any more.

    Image data is never overwritten, so a snapshot contains hard links to the same files.
    """

    def __init__(self, store: Store, images: Path, drawn: Drawn, accounts: Mapping[str, UserAccount], folder: Path):
        """folder: where the directory for the links to image data is created."""
        self.pages, self.drawn, self.accounts = copy_of(store), drawn, accounts
        folder.mkdir(exist_ok=True)
        self.images = Path(tempfile.mkdtemp(dir=folder))
        removed_with(self, self.images)
        _link_all(images, self.images)

    def put_back(self, store: Store, images: Path) -> None:
        """Restore this state in the cloud that has this store and this directory of images."""
        put_back(store, self.pages)
        shutil.rmtree(images, ignore_errors=True)
        images.mkdir()
        _link_all(self.images, images)

    def begin(self, directory: Directory) -> None:
        """Create the database and images of another cloud, which has none yet, from this state."""
        with closing(Store(database(directory.path), durable=False)) as store:
            self.put_back(store, directory.path / IMAGES)


class CloudSnapshots:
    """The snapshots of a cloud with a directory, by name. The caller ensures that nothing writes meanwhile."""

    def __init__(self, store: Store, directory: Directory, seed: Seed, accounts: KnownAccounts):
        self.store, self.seed, self.accounts = store, seed, accounts
        self.images, self.folder = directory.path / IMAGES, directory.path / 'snapshots'
        self.kept: dict[str, CloudSnapshot] = {}

    def list(self) -> list[str]:
        """The names, the oldest first."""
        return list(self.kept)

    def now(self) -> CloudSnapshot:
        """The current state."""
        return CloudSnapshot(self.store, self.images, self.seed.drawn, self.accounts.known, self.folder)

    def take(self, name: str) -> None:
        """Save the current state; Conflict if the name is taken, Invalid for an invalid name or too many snapshots."""
        if not name or len(name) > MAX_NAME_LENGTH:
            raise Invalid(f'The name of a snapshot has 1 to {MAX_NAME_LENGTH} characters.')
        if name in self.kept:
            raise Conflict(f'Snapshot {name} already exists.')
        if len(self.kept) >= MAX_SNAPSHOTS:
            raise Invalid(f'There are already {MAX_SNAPSHOTS} snapshots, which is the maximum.')
        self.kept[name] = self.now()

    def get(self, name: str) -> CloudSnapshot:
        """The snapshot with this name; NotFound."""
        if name not in self.kept:
            raise NotFound(f'There is no snapshot {name}.')
        return self.kept[name]

    def restore(self, name: str) -> None:
        """Restore a snapshot; NotFound."""
        snapshot = self.get(name)
        snapshot.put_back(self.store, self.images)
        self.seed.drawn = snapshot.drawn
        self.accounts.set(snapshot.accounts)

    def delete(self, name: str) -> None:
        """Delete a snapshot; NotFound."""
        self.get(name)
        del self.kept[name]


def _link_all(source: Path, target: Path) -> None:
    if source.is_dir():
        for path in source.iterdir():
            os.link(path, target / path.name)
