// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Wake is one condition under which a tunlet is of use: all that it says is so
// in one process at the same time. Before one of its conditions holds, a
// tunlet's process is not even started, so that many tunlets cost nothing; what
// happened meanwhile does not get lost, see [Description].
//
// A condition should be cheap to fail, not exact: what the tunlet itself makes
// sure of need not be in it, but whatever the tunlet acts on must have met it.
type Wake struct {
	// Object is a pattern (path.Match) of the base name of an object that the
	// process has mapped, e.g. "libmpi.so*"; empty: no matter.
	Object string
	// Levels that its signals have all reached; none: no matter.
	Levels []Level
	// Lasting is how long all of this must have been so; 0: one sample is
	// enough. Every program faults and reads a lot while it starts: a tunlet
	// that is about either should ask for more than a sample.
	Lasting time.Duration
	// Averaged: the counters have risen so over all of Lasting, instead of in each
	// sample of it. What happens 20 times a second is not in every sample.
	Averaged bool
	// Detail is what the process must have one of besides, [DetailSockets] or
	// [DetailPipes]; zero: no matter. It is looked for when all else has been so, which costs
	// more than a sample, and if there is none, not again for some seconds.
	Detail Detail
}

// Awaited is the interest in samples of a process in which a tunlet has nothing to do yet: none
// until one of its conditions of waking may hold there, by its first level.
func Awaited(conditions []Wake, p Process) Interest {
	var levels []Level
	for _, c := range conditions {
		switch {
		case c.Object != "" && !p.Maps(c.Object):
		case len(c.Levels) == 0:
			return AllSamples()
		default:
			levels = append(levels, c.Levels[0])
		}
	}
	if len(conditions) == 0 {
		return AllSamples()
	}
	return SamplesFrom(levels...)
}

func (w Wake) proto() *attunev1.Wake {
	return &attunev1.Wake{
		Object: w.Object, Levels: levelsProto(w.Levels), LastingNanos: int64(w.Lasting), Averaged: w.Averaged,
		Table: uint32(w.Detail),
	}
}

func levelsProto(levels []Level) []*attunev1.Level {
	var out []*attunev1.Level
	for _, l := range levels {
		out = append(out, &attunev1.Level{Series: uint32(l.Signal), AtLeast: l.AtLeast, Of: uint32(l.Of)})
	}
	return out
}
