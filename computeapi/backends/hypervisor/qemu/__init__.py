"""A hypervisor that runs guests: each is a QEMU, told what to do over its QMP, with a folder of its own.

    driver      the Protocol: from what compute says of a server to its guest
    guest       what a guest is made of, as guest.json in its folder keeps it
    folder      the folders of guests, and who may change them
    machine     from a guest to the arguments of its QEMU
    process     the QEMU of a guest: started, found again, ended
    monitor     QMP
    base_images images as files that the disks of guests are laid over
    disks       the disks of a guest
    networks    what stands behind its network cards

Nothing is known by heart: a driver that starts anew finds in the folders what the one before it left.
"""
