"""An OpenStack cloud inside a test, for software that uses OpenStack.

    from computeapi.testing import Cloud

    with Cloud() as cloud:
        server = cloud.connection().compute.create_server(name='web', flavor_id='1', networks='none', image_id=...)

With pytest, the fixture `openstack_cloud` is such a cloud; see docs/how-to/testing.md.
"""

import warnings

with warnings.catch_warnings():
    # Warnings about what a library imports must not be errors where those of the code under test are.
    warnings.simplefilter('ignore')
    from computeapi.testing.cloud import Cloud

__all__ = ['Cloud']
