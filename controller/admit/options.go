// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Measuring is what an Admission needs of who measures.
type Measuring interface {
	// Uprobes returns the kernel's way to watch functions, or why there is none.
	Uprobes() (*uprobe.Uprobes, error)
	// Flush passes on what the kernel has recorded up to now.
	Flush()
	// Holds says whether records of a member wait for its news.
	Holds(*member.Member) bool
	// Finish delivers what is left of a member that has ended.
	Finish(*member.Member, *attunev1.ProcessEnded)
}

// Options of an Admission. All are needed but for those that say otherwise.
type Options struct {
	// Members are the processes that were admitted, or are about to be.
	Members *member.Set
	// Placer places measure points in them.
	Placer *probe.Placer
	// Outbox has their news.
	Outbox *link.Outbox
	// Meter measures them.
	Meter Measuring
	// Cache of the objects that processes map, and Functions that are patched in them.
	Cache     *objfile.Cache
	Functions *sites.Functions
	// Rights say which processes must be left alone.
	Rights Rights
	// JobID, Source, LookInterval, Digests and Readers are those of [track.Options].
	JobID        string
	Source       track.Source
	LookInterval time.Duration
	Digests      *objfile.Digests
	Readers      *readers.Pool
	// GatePath and EarlyGate are those of [gate.Options]; EarlyGate may be nil.
	GatePath    string
	EarlyGate   *os.File
	GateTimeout time.Duration
	// Library is the installed DMLib; empty: there is none.
	Library string
	// LateLibrary has DMLib brought into processes that come without.
	LateLibrary bool
	// Entered is told of each process that it was brought into by itself. It must not wait.
	Entered func(pid int)
	// Context is that of all goroutines, and Go starts one that the owner waits for.
	Context context.Context
	Go      func(func())
	Log     *slog.Logger

	began time.Time // when the Admission was made
}
