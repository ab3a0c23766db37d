"""A hypervisor that runs real guests: each is a QEMU process, controlled over QMP, with a folder of its own.

    driver       the Protocol: maps operations on a server to its guest
    guest        the description of a guest, kept as guest.json in its folder
    folder       the folders of guests, and the claims to change them
    command_line turns a guest into the arguments of its QEMU
    process      the QEMU of a guest: starting, finding and ending it
    monitor      QMP
    base_images  images as files that the disks of guests are laid over
    disks        the disks of a guest
    networks     the backends of its network cards

No state is kept in memory: a restarted driver finds in the folders whatever the previous one left.
"""
