"""Agents in namespaces of their own, without a container engine and without root.

machine      whether this machine allows it, and what its administrator can do
building     makes root file systems: from Dockerfiles, archives, Apptainer images, directories
debootstrap  makes that of the base image without an engine or a registry
archives     reads images that other tools have written
unpacking    unpacks their layers, which may be hostile
rootfs       what a root file system must have
roots        the root file systems on this machine
backend      starts runs
bubblewrap   the options of bubblewrap for a run
syscalls     the filter of system calls, as the program that the kernel runs
supervisor   supervises a run
namespaces   joins the network of a run, and gives up root
limits       what enforces the limits, and control groups
memory       memory that no process is shown to have
gpus         devices and driver files
"""
