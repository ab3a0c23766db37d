"""The volumes of a Cinder."""

from oslo_config import cfg

from computeapi.backends.volume.cinder.attachments import CinderUse
from computeapi.backends.volume.cinder.snapshots import CinderSnapshotLife
from computeapi.backends.volume.cinder.volumes import CinderVolumeLife


class CinderVolumes(CinderVolumeLife, CinderUse, CinderSnapshotLife):
    """The volumes of a Cinder; see `computeapi.backends.volume.Volumes`.

    cfg.ConfigFileValueError without a key to encrypt callers' tokens: new volumes are created with these."""

    def __init__(self, conf: cfg.ConfigOpts):
        if not conf.service_user.task_token_key:
            raise cfg.ConfigFileValueError(
                'Cinder creates volumes for servers with the token of the caller: '
                '[service_user]task_token_key must be set to encrypt it until then'
            )
        super().__init__(conf)
