"""The APIs of the local identity, image, network, volume and share backends.

They speak enough Keystone v3, Glance v2, Neutron v2.0, Cinder v3 and Manila v2 for unmodified clients of
the compute API; each is one WSGI app, mounted by path beside compute.
"""
