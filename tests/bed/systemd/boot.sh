#!/bin/sh
# Becomes the container manager of a node; run as the first process of a PID namespace and in a mount namespace of its
# own, so that nothing is left of it, no mount and no process, when it ends in whatever way.
#
#   boot.sh NAME DIRECTORY BASE HOSTNAME [OPTION OF systemd-nspawn...]
set -eu
name=$1 dir=$2 base=$3 host=$4
shift 4

# A control group for each node, in every hierarchy in which systemd keeps its units: two nodes in one would end each
# other's processes. Controllers of version 1 stay the host's: the nodes may not use them.
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  if [ -e "$hierarchy/cgroup.procs" ]; then
    mkdir -p "$hierarchy/$name"
    echo 0 >"$hierarchy/$name/cgroup.procs"
  fi
done

# systemd-nspawn wants to remove what it made in /run, and refuses to where that is on a disk.
mount -t tmpfs -o mode=0755 tmpfs /run
mount -t overlay -o "lowerdir=$base,upperdir=$dir/up,workdir=$dir/work" overlay "$dir/root"

exec systemd-nspawn --quiet --directory="$dir/root" --machine="$name" --hostname="$host" --boot \
  --register=no --keep-unit --private-network --resolv-conf=off --timezone=off --link-journal=no --console=read-only "$@"
