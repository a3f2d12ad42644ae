// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Found is a process that a registration means.
type Found struct {
	// Registration that it is given to. It must not be changed.
	Registration *attunev1.Registration
	// Process as far as it is known: no handle, host, objects or mechanisms,
	// the digest only if it is known already. Its job is the execution that it belongs to.
	Process *attunev1.Process
	// Held is the process, open; the handler closes it. Nil for one that ended
	// before it could be held; others may have ended by now as well.
	Held *procid.Process
}

// Handler is told of processes, one call at a time. It must neither block nor
// call the Watcher's methods.
type Handler interface {
	// Found gives a process. If the handler takes it, it and what it forks are
	// given to nobody else; if not (it returns false), another registration may
	// have it.
	Found(Found) (taken bool)
	// Mismatch tells of a process that has the name of a registered application
	// and another checksum, once.
	Mismatch(*attunev1.Mismatch)
}
