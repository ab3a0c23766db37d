"""Images, and the data of small ones."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from computeapi.backends.image.files import ImageFiles
from computeapi.kit.cloud_files.content import CloudContent
from computeapi.kit.cloud_files.document import CloudFileError
from computeapi.kit.cloud_files.export import Beside, Export

SMALL_BYTES = 64 * 1024
"""The largest image whose data is included in a document."""


def load(content: CloudContent, files: ImageFiles) -> None:
    for place, entry in content.entries('images'):
        row = content.make('images', entry, place)
        row['owner'] = row['owner'] or None
        if entry.get('data'):
            try:
                data = base64.b64decode(entry['data'], validate=True)
            except ValueError as error:
                raise CloudFileError((*place, 'data'), str(error)) from None
            written = files.write(row['id'], [data])
            content.image_data[row['id']] = written
            row |= {'size': written.size, 'checksum': written.checksum, 'hash_value': written.hash_value}
        content.add_pairs('image_properties', row['id'], entry.get('properties', {}))
        for tag in sorted(set(entry.get('tags', ()))):
            content.add('image_tags', image_id=row['id'], tag=tag)


@contextmanager
def stored_at_end(content: CloudContent, files: ImageFiles) -> Iterator[None]:
    """Store the data of the images at the end of the block; delete it if the block fails."""
    try:
        yield
        for image_id, written in content.image_data.items():
            files.store(image_id, written)
    finally:
        for written in content.image_data.values():
            files.discard(written)


def export(export: Export, files: ImageFiles) -> None:
    beside: Beside = {'properties': export.pairs('image_properties'), 'tags': export.tags('image_tags')}
    for row, entry in export.section('images', beside=beside):
        if row['owner'] is None:
            entry['project'] = None
        path = files.directory / row['id']
        if row['size'] is not None and row['size'] <= SMALL_BYTES and path.is_file():
            entry['data'] = base64.b64encode(path.read_bytes()).decode()
    export.leaves_out('members of images', 'image_members')
