// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

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
	// refused says that it does not get one that it described so, and why.
	refused(w wish, spec *attunev1.MeasurePoint, reason string)
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

const (
	// maxIndex is the greatest index of a point: it has 16 bits in a record.
	maxIndex = 65535
	// maxPointBytes bounds what all points weigh, so that a want that has all of them
	// is a message that a channel carries.
	maxPointBytes = attunev1.MaxMessage / 2
	// reuseAfter is how long the index of a point that was given back rests:
	// what was recorded under it may still be under way.
	reuseAfter = 10 * time.Second
)

// pointSet has all points of a session, and gives them their indexes. It belongs to
// the loop.
type pointSet struct {
	byIndex map[uint32]*point
	byKey   map[string]*point
	last    uint32  // the greatest index so far
	free    []freed // indexes below it, the earliest first
	bytes   int     // what the points weigh
}

// freed is the index of a point that was given back.
type freed struct {
	index uint32
	at    time.Duration
}

// index returns an index for another point; 0 if none is left. Tunlets ask for
// points process by process, so a long job needs more than there are.
func (ps *pointSet) index(now time.Duration) uint32 {
	switch {
	case len(ps.free) > 0 && now-ps.free[0].at >= reuseAfter:
		index := ps.free[0].index
		ps.free = ps.free[1:]
		return index
	case ps.last < maxIndex:
		ps.last++
		return ps.last
	}
	return 0
}

func newPointSet() pointSet {
	return pointSet{byIndex: map[uint32]*point{}, byKey: map[string]*point{}}
}

// add takes a point in, under an index of index.
func (ps *pointSet) add(p *point) {
	ps.bytes += weightOf(p.spec)
	ps.byIndex[p.index], ps.byKey[p.key] = p, p
}

// retire takes a point that nobody wants out of use.
func (ps *pointSet) retire(p *point, now time.Duration) {
	ps.bytes -= weightOf(p.spec)
	ps.free = append(ps.free, freed{p.index, now})
	delete(ps.byIndex, p.index)
	delete(ps.byKey, p.key)
}

// processEnded forgets the statuses of a process.
func (ps *pointSet) processEnded(id uint64) {
	for _, p := range ps.byIndex {
		delete(p.status, id)
	}
}
