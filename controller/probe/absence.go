// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// absence is that of a point which was in a process and is to be there again.
type absence struct {
	spec  *attunev1.MeasurePoint // tells it from a later point of the same index
	since time.Time
	late  time.Duration // of its placement before
}

// now is how long the point has not been in the process, in all.
func (a absence) now() time.Duration { return a.late + time.Since(a.since) }

// recalled is a point that is out of a process until patches serve it again.
type recalled struct {
	absence

	back bool // the kernel has let go of it
}
