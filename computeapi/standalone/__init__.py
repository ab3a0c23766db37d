"""The APIs of the built-in identity, image, network, volume and share services.

They implement enough of Keystone v3, Glance v2, Neutron v2.0, Cinder v3 and Manila v2 for unmodified clients of the
compute API. Each is one WSGI app, mounted by path next to compute.
"""
