#!/bin/sh
# Stands for sbatch, squeue, sacct, scancel and scontrol, by the name it is called with. $FAKE is its folder: `jobs` has what it accepted, a
# line a task as squeue --format='%F|%K|%T|%r|%j %k' has it; each sbatch takes the first line of `faults` and does what that says.
cd "$FAKE" || exit 1
name=${0##*/}

accept() {  # prints the id
  (
    flock 9
    id=$(($(cat last 2>/dev/null || echo 100) + 1))
    echo $id > last
    echo "$id $job_name $arguments" >> accepted
    if [ -n "$array" ]; then
      i=0
      while [ $i -le "$array" ]; do echo "$id|$i|PENDING|Priority|$job_name $comment" >> jobs; i=$((i + 1)); done
    else
      echo "$id|N/A|PENDING|Priority|$job_name $comment" >> jobs
    fi
    echo $id
  ) 9> lock
}

case $name in
  sbatch)
    if [ "$*" = accept ]; then accept; exit; fi  # of `late`
    echo "$*" >> calls
    job_name='' comment='' array='' arguments=''
    for word; do
      case $word in
        --job-name=*) job_name=${word#*=} ;;
        --comment=*) comment=${word#*=} ;;
        --array=*) array=${word%%%*}; array=${array##*-} ;;  # "--array=0-23%8": 23
        --*) ;;
        *) arguments="$arguments $word" ;;
      esac
    done
    fault=$(head -n 1 faults 2>/dev/null)
    [ ! -s faults ] || sed -i 1d faults
    case $fault in
      slow-after) accept > /dev/null; sleep 600 ;;
      slow-before) sleep 600 ;;
      late) export job_name comment array arguments; setsid sh -c 'sleep 1.5; exec "$0" accept' "$0" > /dev/null 2>&1 < /dev/null & sleep 600 ;;
      fail-after) accept > /dev/null; echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1 ;;
      fail-before) echo "sbatch: error: Unable to contact slurm controller (connect failure)" >&2; exit 1 ;;
      refuse) echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1 ;;
      garbage-after) accept > /dev/null; printf 'Welcome to the cluster!\n\001\377\n' ;;
      garbage-before) echo "4x" ;;
      chatty) id=$(accept); echo "$id;cluster" ;;
      *) accept ;;
    esac ;;
  squeue)
    echo "$*" >> asked
    if [ -e squeue-fails ]; then echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; fi
    if [ -e squeue-garbage ]; then echo "Welcome to the cluster!"; exit 0; fi
    cat jobs 2>/dev/null
    exit 0 ;;
  sacct) echo "Slurm accounting storage is disabled" >&2; exit 1 ;;
  scancel)
    echo "$*" >> cancelled
    case "$*" in
      *--signal=*)
        [ -e begins ] || exit 0  # else: its node has not begun its script
        rm begins
        echo "scancel: error: Kill job error on job id 101: Invalid job id specified" >&2
        exit 1 ;;
    esac
    for word; do
      case $word in
        --*) ;;
        *) sed -i "s/^\($word|[^|]*\)|PENDING|/\1|CANCELLED|/" jobs ;;
      esac
    done ;;
  scontrol) echo "Slurmctld(primary) at fake is UP" ;;
esac
