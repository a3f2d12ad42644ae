// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"log/slog"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Names of the mechanisms, as PointStatus gives them.
const (
	MechanismHook  = "hook"
	MechanismGOT   = "got"
	MechanismPatch = "patch"
)

// Options of a Placer.
type Options struct {
	// Status hears what became of each point in each process. It must not
	// call the Placer and must not block for long.
	Status func(*attunev1.PointStatus)
	// Leaving is called before points are taken out of a process that is not
	// known to have ended, for what was counted there is gone afterwards. It
	// must not call the Placer, but for Uprobed and Costs. May be nil.
	Leaving func(handle uint64, points ...uint16)
	// Uprobes gives the kernel's mechanism, or the reason why it is not
	// there. It is called when the first point needs it.
	Uprobes func() (*uprobe.Uprobes, error)
	// Functions is what the Sites of all processes share. Nil: a new one.
	Functions *sites.Functions
	// Clock is that of DMLib's durations. Nil: one of its own.
	Clock *shm.Clock
	// Log may be nil.
	Log *slog.Logger
}

// withDefaults fills in what may be nil.
func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Leaving == nil {
		o.Leaving = func(uint64, ...uint16) {}
	}
	if o.Functions == nil {
		o.Functions = new(sites.Functions)
	}
	if o.Clock == nil {
		o.Clock = shm.NewClock()
	}
	return o
}
