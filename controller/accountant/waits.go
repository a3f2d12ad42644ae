// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// cause is what a thread waits for. Where several threads wait for different things, the
// first of these counts: a thread that waits for a lock waits for another thread, and a
// parent for its child.
type cause int

const (
	forDisk cause = iota
	forNetwork
	forPipes
	forEvents
	forLocks
	forSleep
	forOther
	causes // how many there are
	// unseen: the thread runs, or the kernel does not tell.
	unseen
)

// waitFunctions are the beginnings of the names of the kernel's functions that threads wait
// in (/proc/PID/task/TID/wchan).
var waitFunctions = [causes][]string{
	forDisk: {
		"io_schedule", "folio_", "filemap_", "wait_on_page", "wait_on_buffer", "__wait_on_buffer", "wait_on_bit", "bit_wait", "out_of_line_wait",
		"blk", "submit_bio", "dio_", "iomap_", "jbd2_", "ext4_", "xfs_", "btrfs_", "balance_dirty", "rq_qos", "wbt_", "read_swap", "vfs_fsync", "sync_",
		"rpc_", "nfs", "fuse_", "request_wait_answer", "ceph_", "cifs_", "smb", "cl_", "ldlm_", "ptlrpc_", "osc_", "ll_", "gpfs", "cxiWait",
	},
	forNetwork: {"tcp_", "inet_", "udp_", "sk_", "skb_", "__skb_", "sock_", "mptcp_"},
	forPipes:   {"pipe_", "anon_pipe_", "unix_", "fifo_", "wait_for_partner"},
	forEvents:  {"poll_", "do_poll", "do_sys_poll", "do_select", "ep_", "do_epoll", "io_cqring", "io_wq"},
	forLocks:   {"futex_"},
	forSleep:   {"hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "clock_nanosleep"},
}

// waitIn is what a thread waits for in a function of the kernel; descriptor is the file that
// its system call is on, which is asked for where the function does not say.
func waitIn(function string, descriptor func() string) cause {
	switch {
	case function == "" || function == "0":
		return unseen
	case strings.HasPrefix(function, "wait_woken"): // sockets of a network, terminals
		if strings.HasPrefix(descriptor(), "socket:") {
			return forNetwork
		}
		return forOther
	}
	for kind, names := range waitFunctions {
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(function, name) }) {
			return cause(kind)
		}
	}
	return forOther
}

// maxWaiters bounds the threads that are asked in one look.
const maxWaiters = 64

// waitOf is what processes wait for of which no thread runs.
func waitOf(alive []living) cause {
	first, asked := unseen, 0
	for _, p := range alive {
		tids, _ := procid.Threads(p.pid) // none of a process that has ended
		for _, tid := range tids {
			if asked++; asked > maxWaiters {
				return first
			}
			task := fmt.Sprintf("/proc/%d/task/%d", p.pid, tid)
			function, err := os.ReadFile(task + "/wchan")
			if err != nil {
				continue
			}
			first = min(first, waitIn(string(function), func() string { return descriptorOf(task) }))
		}
	}
	return first
}

// descriptorOf is the file behind the first argument of a thread's system call; empty if
// that is not known.
func descriptorOf(task string) string {
	call, err := os.ReadFile(task + "/syscall")
	if err != nil {
		return ""
	}
	var number, fd int
	if n, _ := fmt.Sscanf(string(call), "%d %v", &number, &fd); n < 2 {
		return ""
	}
	link, _ := os.Readlink(filepath.Join(task, "fd", fmt.Sprint(fd))) // empty: not known
	return link
}
