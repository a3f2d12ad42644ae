#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Slurm task prolog: what the plugin does, on nodes where no plugin may be
# installed. In slurm.conf: TaskProlog=/usr/lib/attune/slurm/task-prolog.sh
#
# It runs as the job's user while the task waits, and hands the task over to the
# node's attuned. A job asks for it by ATTUNE_MODE=tune, advise or observe in its
# environment, and may name tunlets in ATTUNE_TUNLETS, and what is to become better in
# ATTUNE_OBJECTIVE. Without attuned, or without curl, the task starts as ever, after a
# quarter of a second at most.
socket=${ATTUNED_SOCKET:-/run/attune/attuned.sock}
case ${ATTUNE_MODE:-off} in tune | advise | observe) ;; *) exit 0 ;; esac
case ${ATTUNE_TUNLETS:-} in *[!a-z0-9,-]*) exit 0 ;; esac
case ${ATTUNE_OBJECTIVE:-} in *[[:cntrl:]]*) exit 0 ;; esac
[ -S "$socket" ] && command -v curl >/dev/null || exit 0

tunlets=${ATTUNE_TUNLETS:+\"$(echo "$ATTUNE_TUNLETS" | sed 's/,/","/g')\"}
objective=$(printf %s "${ATTUNE_OBJECTIVE:-}" | sed 's/["\\]/\\&/g')
job="{\"kind\":\"slurm\",\"id\":\"$SLURM_JOB_ID\",\"step\":\"${SLURM_STEP_ID:-batch}\"}"
task="{\"pid\":$PPID,\"uid\":$(id -u),\"mode\":\"$ATTUNE_MODE\",\"tunlets\":[$tunlets],\"objective\":\"$objective\",\"rank\":${SLURM_PROCID:-0},\"job\":$job}"

# What it prints as "export NAME=VALUE" the task gets; the caller's own preloads
# come last.
curl --silent --fail --max-time 0.25 --unix-socket "$socket" -H 'Accept: text/plain' \
    -H 'Content-Type: application/json' --data "$task" http://attuned/v1/task 2>/dev/null |
    while IFS= read -r line; do
        case $line in
        LD_PRELOAD=?*) echo "export $line${LD_PRELOAD:+:$LD_PRELOAD}" ;;
        ATTUNE*=*) echo "export $line" ;;
        esac
    done
exit 0
