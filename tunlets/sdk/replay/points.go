// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"maps"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
)

// pointset knows the measure points that the recording has at present, and those
// that the tunlet asked for, and has the tunlet fed with what is both.
type pointset struct {
	feed     *feed.Feed
	recorded map[uint32]*recorded // by index
	asked    []*attunev1.MeasurePoint
	keys     map[string]string // of those asked for, by id
}

// recorded is a measure point that the recording has.
type recorded struct {
	key    string
	status map[uint64]*attunev1.PointStatus // by process
}

func newPointset(f *feed.Feed) pointset {
	return pointset{feed: f, recorded: map[uint32]*recorded{}, keys: map[string]string{}}
}

// appear, disappear, setStatus and forget follow the recording.
func (ps *pointset) appear(p *attunev1.AddPoint) {
	r := &recorded{key: pointKey(p.GetSpec()), status: map[uint64]*attunev1.PointStatus{}}
	ps.recorded[p.GetPoint()] = r
	for _, spec := range ps.asked {
		if ps.keys[spec.GetId()] == r.key {
			ps.feed.Add(p.GetPoint(), spec)
		}
	}
}

func (ps *pointset) disappear(index uint32) {
	delete(ps.recorded, index)
	for _, spec := range ps.asked {
		ps.feed.Remove(index, spec.GetId())
	}
}

func (ps *pointset) setStatus(st *attunev1.PointStatus) {
	if r := ps.recorded[st.GetPoint()]; r != nil {
		r.status[st.GetProcess()] = st
	}
}

func (ps *pointset) forget(process uint64) {
	for _, r := range ps.recorded {
		delete(r.status, process)
	}
}

// add takes in what the tunlet asks for, unless it has that already, or another one by
// that id.
func (ps *pointset) add(spec *attunev1.MeasurePoint) (added, another bool) {
	id, key := spec.GetId(), pointKey(spec)
	if i := ps.find(id); i >= 0 {
		return false, ps.keys[id] != key || !slices.Equal(ps.asked[i].GetProcesses(), spec.GetProcesses())
	}
	ps.asked, ps.keys[id] = append(ps.asked, spec), key
	for index, r := range ps.recorded {
		if r.key == key {
			ps.feed.Add(index, spec)
		}
	}
	return true, false
}

// remove takes out what the tunlet does not want any more.
func (ps *pointset) remove(id string) bool {
	i := ps.find(id)
	if i < 0 {
		return false
	}
	ps.asked = slices.Delete(ps.asked, i, i+1)
	delete(ps.keys, id)
	for index := range ps.recorded {
		ps.feed.Remove(index, id)
	}
	return true
}

func (ps *pointset) find(id string) int {
	return slices.IndexFunc(ps.asked, func(p *attunev1.MeasurePoint) bool { return p.GetId() == id })
}

// statuses returns what the recording has said so far of a point that the tunlet
// asks for, by index and process.
func (ps *pointset) statuses(spec *attunev1.MeasurePoint) (out []*attunev1.PointStatus) {
	key := pointKey(spec)
	for _, index := range slices.Sorted(maps.Keys(ps.recorded)) {
		r := ps.recorded[index]
		if r.key != key {
			continue
		}
		for _, process := range slices.Sorted(maps.Keys(r.status)) {
			if feed.Covers(spec, process) {
				out = append(out, r.status[process])
			}
		}
	}
	return out
}
