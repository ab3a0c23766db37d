"""The APIs of the local identity, image, network and volume backends.

They speak enough Keystone v3, Glance v2, Neutron v2.0 and Cinder v3 for unmodified clients of
the compute API; each is one WSGI app, mounted by path beside compute.
"""
