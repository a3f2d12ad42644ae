// SPDX-License-Identifier: Apache-2.0

package session

import (
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wish is one measure point as its holder calls it, in one process; 0: in those that
// the point says.
type wish struct {
	id      string
	process uint64
}

// recorded is what the sinks are told of a wish; the caller adds the rest.
func (w wish) recorded(holder string) *attunev1.RecordedAsk {
	return &attunev1.RecordedAsk{Asker: holder, Id: w.id, Process: w.process}
}

// holder has points, under names of its own.
type holder struct {
	name   string
	points map[wish]*point
	hears  hearer
}

// hearer hears what becomes of the points that a holder asks for.
type hearer interface {
	// granted says that the holder has a point from now on, which it described so.
	granted(w wish, spec *attunev1.MeasurePoint, p *point)
	// refused says that it does not get one, and why.
	refused(w wish, reason string)
	// changed says how a point stands that it has.
	changed(w wish, status *attunev1.PointStatus)
	// released says that it has a point no longer.
	released(w wish, p *point)
}

// subscriber is a holder that asked for a point, under a name of its own.
type subscriber struct {
	holder *holder
	wish   wish
}

// point is one measure point. Those who ask for the same share it.
type point struct {
	index       uint32
	key         string // what makes two points the same
	spec        *attunev1.MeasurePoint
	subscribers []subscriber
	status      map[uint64]*attunev1.PointStatus // by running process
}

// keyOf returns what makes two measure points the same: all but the name.
func keyOf(spec *attunev1.MeasurePoint) string {
	anonymous := proto.CloneOf(spec)
	anonymous.Id = ""
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(anonymous)
	if err != nil { // only for invalid UTF-8: then it is nobody else's
		return spec.String()
	}
	return string(data)
}

// weightOf is how many bytes a point takes in a want, at most: handles of processes
// are a controller's own there.
func weightOf(spec *attunev1.MeasurePoint) int {
	const frame, handle = 16, 10
	return proto.Size(spec) + frame + handle*len(spec.GetProcesses())
}
