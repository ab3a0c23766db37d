"""Notifies other services, such as Ceilometer, Designate or Watcher, of what happens in the cloud.

A notification is written in the transaction of what it is about, so a crash neither loses one nor invents one. `Sender`
sends it soon afterwards, again if it is not known whether it arrived.
"""
