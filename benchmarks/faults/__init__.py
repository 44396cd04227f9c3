"""Faults and what they cost: kills at random moments and at every step to the disk, failing disks, clinging agents."""
