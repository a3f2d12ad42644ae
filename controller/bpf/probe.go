// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// narrowSince is the first version of Linux in which all threads of a process hit a
// uprobe_multi that stands in this process only. Before, its first thread does.
const narrowSince = 6<<16 | 10<<8

// MultiInOneProcess says whether uprobe_multi serves for probes in one process only, with
// a kernel of that LINUX_VERSION_CODE which has it.
func MultiInOneProcess(kernel uint32) bool { return kernel >= narrowSince }

// Spot is where a probe goes: offsets in the file of the instruction and of a static
// probe's counter (0: none), and what the program is given as its cookie.
type Spot struct{ Offset, Counter, Cookie uint64 }

// Probe is a program for uprobes.
type Probe struct {
	Program *ebpf.Program
	AtExit  bool // by a return probe
}

// Attach puts one probe at each spot, in one process or with 0 in all that map the file;
// without uprobe_multi there must be one spot only.
func (p Probe) Attach(executable *link.Executable, spots []Spot, pid int, multi bool) (link.Link, error) {
	if !multi {
		opts := &link.UprobeOptions{Address: spots[0].Offset, RefCtrOffset: spots[0].Counter, Cookie: spots[0].Cookie, PID: pid}
		if p.AtExit {
			return executable.Uretprobe("", p.Program, opts)
		}
		return executable.Uprobe("", p.Program, opts)
	}
	opts := &link.UprobeMultiOptions{PID: uint32(pid)}
	for _, s := range spots {
		opts.Addresses = append(opts.Addresses, s.Offset)
		opts.RefCtrOffsets = append(opts.RefCtrOffsets, s.Counter)
		opts.Cookies = append(opts.Cookies, s.Cookie)
	}
	if p.AtExit {
		return executable.UretprobeMulti(nil, p.Program, opts)
	}
	return executable.UprobeMulti(nil, p.Program, opts)
}
