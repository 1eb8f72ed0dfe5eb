#!/usr/bin/env bash
# stop.sh FOLDER: end the daemons that start.sh started there, and whatever runs in their jobs; nothing else.
set -uo pipefail
[ $# = 1 ] || { echo "usage: stop.sh FOLDER" >&2; exit 2; }
folder=$(cd "$1" 2> /dev/null && pwd) || exit 0

stop() { # NAME: the process of its pid file, kindly; after 5 seconds not
    local pid tries=0
    pid=$(cat "$folder/$1.pid" 2> /dev/null)
    while [ -n "$pid" ] && grep -aqsF "$folder/" "/proc/$pid/cmdline"; do
        if [ $((tries++)) -lt 50 ]; then kill "$pid"; else kill -9 "$pid"; fi 2> /dev/null
        sleep 0.1
    done
    rm -f "$folder/$1.pid"
}

stop slurmd # first, so that no job starts meanwhile
# The processes of a job bear the name of the cluster beside that of the folder, which a shell of the caller does not.
cluster=$(sed -n 's/^ClusterName=//p' "$folder/slurm.conf" 2> /dev/null)
for process in /proc/[0-9]*; do
    names=$(tr '\0' '\n' 2> /dev/null < "$process/environ")
    grep -qxF "SLURM_CONF=$folder/slurm.conf" <<< "$names" || continue
    if grep -qxF "SLURM_CLUSTER_NAME=$cluster" <<< "$names" || grep -qsx slurmstepd "$process/comm"; then
        kill -9 "${process#/proc/}" 2> /dev/null
    fi
done
stop slurmctld
stop munged
