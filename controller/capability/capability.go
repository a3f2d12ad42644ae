// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// State says how far a mechanism can be used.
type State string

// States of a mechanism.
const (
	// Available: without restriction.
	Available State = "available"
	// Degraded: with a restriction, which Reason names.
	Degraded State = "degraded"
	// Unavailable: not at all, for Reason.
	Unavailable State = "unavailable"
)

// Capability is what was found out about one mechanism.
type Capability struct {
	// Name, stable, in lower case: preload, uprobe, cap_bpf, ...
	Name string `json:"name"`
	// State it is in.
	State State `json:"state"`
	// Detail of what was found; may be empty.
	Detail string `json:"detail,omitempty"`
	// Reason for not being fully available, in plain words.
	Reason string `json:"reason,omitempty"`
	// Remedy, in plain words; empty where there is none.
	Remedy string `json:"remedy,omitempty"`
}

// Options tunes Probe; the zero value probes everything.
type Options struct {
	// Fast leaves out what takes longer than a few system calls.
	Fast bool
	// Library is DMLib's path; if given, it is really preloaded.
	Library string

	// root is where /proc and /sys are read from, for tests with fixtures.
	root string
}

// Probe finds out what can be done here. The order of the result is fixed. It
// always has an entry for every mechanism of the set: one that was not reached
// before ctx ended is unavailable for that reason.
func Probe(ctx context.Context, opts Options) []Capability {
	n := newNode(opts)
	defer n.close()
	var found []Capability
	for _, p := range catalogue() {
		look := p.full
		if opts.Fast {
			look = p.fast
		}
		if look == nil {
			continue
		}
		var f finding
		if err := ctx.Err(); err == nil {
			f = look(ctx, n)
		} else {
			f = unavailable("not looked at: "+err.Error(), "")
		}
		found = append(found, Capability{p.name, f.state, f.detail, f.reason, f.remedy})
	}
	return found
}

// Mechanisms is the short list that a node is listed with: the
// ways into processes, out of a fast or full result of Probe.
func Mechanisms(found []Capability) []*attunev1.Mechanism {
	wanted := map[string]string{
		preload:   "dmlib",
		got:       "got",
		uprobes:   "uprobe",
		execEvent: "exec_events",
		vmWrite:   "vm_write",
		ptrace:    "ptrace",
	}
	// Reading /proc of one's own processes needs nothing.
	mechanisms := []*attunev1.Mechanism{{Name: "proc", Available: true}}
	for _, c := range found {
		if name := wanted[c.Name]; name != "" {
			mechanisms = append(mechanisms, &attunev1.Mechanism{
				Name: name, Available: c.State != Unavailable, Reason: c.Reason,
			})
		}
	}
	return mechanisms
}
