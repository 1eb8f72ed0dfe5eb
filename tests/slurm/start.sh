#!/usr/bin/env bash
# start.sh FOLDER: one node of Slurm, as the user who calls, all of whose files lie in FOLDER.
# Prints the line that makes sbatch, squeue and the others talk to it:  eval "$(start.sh /tmp/slurm)"
# Called again it starts only the daemons that died. stop.sh FOLDER ends it. Neither systemd nor cgroups are needed.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "error: Slurm cannot start here: $1" >&2
    [ -z "${folder:-}" ] || bash "$here/stop.sh" "$folder"
    exit 1
}

[ $# = 1 ] || { echo "usage: start.sh FOLDER" >&2; exit 2; }
for program in munged slurmctld slurmd sbatch; do
    command -v $program > /dev/null || fail "$program is not installed (Debian: apt-get install slurm-wlm munge)"
done
mkdir -p "$1"/{state,spool} 2> /dev/null || fail "the folder $1 cannot be written"
folder=$(cd "$1" && pwd)
[ ${#folder} -le 60 ] || fail "a path of over 60 characters is too long for its sockets: $folder"
export SLURM_CONF=$folder/slurm.conf

free_port() { # a random one that nobody listens on
    local port
    while port=$((RANDOM % 20000 + 20000)); (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do :; done
    echo "$port"
}

if [ ! -e "$SLURM_CONF" ]; then
    (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
    cat > "$SLURM_CONF.new" << END
ClusterName=single$(free_port)
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
# A requeued job waits for cred_expire seconds (by default 120) before it starts again.
AuthInfo=socket=$folder/munge.socket,cred_expire=10
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
JobRequeue=1
MaxArraySize=40
MinJobAge=5
KillWait=2
SlurmdTimeout=30
ReturnToService=2
# The node offers four cores whatever the machine has, so that tests see four jobs at once.
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=127.0.0.1 CPUs=4 RealMemory=16000
PartitionName=debug Nodes=localhost Default=YES MaxTime=INFINITE
PartitionName=short Nodes=localhost MaxTime=1
END
    mv "$SLURM_CONF.new" "$SLURM_CONF"
fi

start() { # NAME COMMAND...: unless the process of its pid file lives
    local name=$1
    shift
    grep -aqsF "$folder/" "/proc/$(cat "$folder/$name.pid" 2> /dev/null)/cmdline" && return
    "$@" > "$folder/$name.out" 2>&1 < /dev/null || fail "$name: $(tail -n 1 "$folder/$name.out")"
}
start munged munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
start slurmctld slurmctld -f "$SLURM_CONF"
start slurmd slurmd -N localhost -f "$SLURM_CONF"

deadline=$((SECONDS + 30))
node() { timeout 5 sinfo -h -n localhost -p debug -o %t 2> /dev/null; }
until state=$(node) && [[ $state =~ ^(idle|mix|alloc|comp)$ ]]; do
    [ $SECONDS -lt $deadline ] || fail "its node did not come up in 30 seconds (see the logs in $folder)"
    if [[ $state == dr* ]]; then # a controller that was killed within 5 seconds of a job's start drains the node
        scontrol update NodeName=localhost State=RESUME || true
    fi
    sleep 0.2
done
echo "export SLURM_CONF=$SLURM_CONF"
