"""Tables of the image service; the data are stored in files."""

import sqlalchemy as sa

from computeapi.db.tables.types import BigInteger, Id, Text, Timestamp, metadata, pairs

images = sa.Table(
    'images',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('owner', Id(), index=True),
    sa.Column('name', Text(255), index=True),
    sa.Column('status', Text(32), nullable=False),
    sa.Column('visibility', Text(16), nullable=False),
    sa.Column('size', BigInteger),
    sa.Column('virtual_size', BigInteger),
    sa.Column('min_disk', sa.Integer, nullable=False),
    sa.Column('min_ram', sa.Integer, nullable=False),
    sa.Column('disk_format', Text(32)),
    sa.Column('container_format', Text(32)),
    sa.Column('checksum', Text(32)),
    sa.Column('hash_value', Text(128)),
    sa.Column('protected', sa.Boolean, nullable=False),
    sa.Column('hidden', sa.Boolean, nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False, index=True),
    sa.Column('updated_at', Timestamp(), nullable=False),
)

image_properties = pairs('image_properties', 'images.id')


def _image_id() -> sa.ForeignKey:
    return sa.ForeignKey('images.id', ondelete='CASCADE')


image_tags = sa.Table(
    'image_tags',
    metadata,
    sa.Column('image_id', Id(), _image_id(), primary_key=True),
    sa.Column('tag', Text(255), primary_key=True),
)

image_members = sa.Table(
    'image_members',
    metadata,
    sa.Column('image_id', Id(), _image_id(), primary_key=True),
    sa.Column('member_id', Id(), primary_key=True, index=True),
    sa.Column('status', Text(16), nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
)

# Clients may choose the IDs of images: that of a deleted image stays taken, so that nobody can replace the image.
deleted_images = sa.Table(
    'deleted_images',
    metadata,
    sa.Column('id', Id(), primary_key=True),
)
