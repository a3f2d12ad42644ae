// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"maps"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// pointset knows the measure points that the recording has at present, and those
// that the tunlet asked for.
type pointset struct {
	recorded map[uint32]*recorded // by index
	asked    []*attunev1.MeasurePoint
	keys     map[string]string // of those asked for, by id
}

// recorded is a measure point that the recording has.
type recorded struct {
	key    string
	status map[uint64]*attunev1.PointStatus // by process
}

func newPointset() pointset {
	return pointset{recorded: map[uint32]*recorded{}, keys: map[string]string{}}
}

// appear, disappear, setStatus and forget follow the recording.
func (ps *pointset) appear(p *attunev1.AddPoint) {
	ps.recorded[p.GetPoint()] = &recorded{key: pointKey(p.GetSpec()), status: map[uint64]*attunev1.PointStatus{}}
}

func (ps *pointset) disappear(index uint32) { delete(ps.recorded, index) }

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

// add takes in what the tunlet asks for; false if it has that already.
func (ps *pointset) add(spec *attunev1.MeasurePoint) bool {
	id, key := spec.GetId(), pointKey(spec)
	if i := ps.find(id); i >= 0 && ps.keys[id] == key && slices.Equal(ps.asked[i].GetProcesses(), spec.GetProcesses()) {
		return false
	}
	ps.remove(id)
	ps.asked, ps.keys[id] = append(ps.asked, spec), key
	return true
}

// remove takes out what the tunlet does not want any more.
func (ps *pointset) remove(id string) bool {
	i := ps.find(id)
	if i < 0 {
		return false
	}
	ps.asked = slices.Delete(ps.asked, i, i+1)
	delete(ps.keys, id)
	return true
}

func (ps *pointset) find(id string) int {
	return slices.IndexFunc(ps.asked, func(p *attunev1.MeasurePoint) bool { return p.GetId() == id })
}

// wanted returns the ids under which the tunlet asked for a recorded point in a
// process, in the order in which it did.
func (ps *pointset) wanted(index uint32, process uint64) (ids []string) {
	r := ps.recorded[index]
	if r == nil {
		return nil
	}
	for _, spec := range ps.asked {
		if ps.keys[spec.GetId()] == r.key && covers(spec, process) {
			ids = append(ids, spec.GetId())
		}
	}
	return ids
}

// covers says whether a point is meant for a process; 0 stands for no certain one.
func covers(spec *attunev1.MeasurePoint, process uint64) bool {
	return len(spec.GetProcesses()) == 0 || process == 0 || slices.Contains(spec.GetProcesses(), process)
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
			if covers(spec, process) {
				out = append(out, r.status[process])
			}
		}
	}
	return out
}

// anyRecords says whether the tunlet wants a point that is delivered as records.
func (ps *pointset) anyRecords() bool {
	return slices.ContainsFunc(ps.asked, func(p *attunev1.MeasurePoint) bool {
		return p.GetDelivery() == attunev1.Delivery_DELIVERY_EVENT || p.GetDelivery() == attunev1.Delivery_DELIVERY_SAMPLED
	})
}

// records returns those of packed records that the tunlet wants, each with its
// continuations.
func (ps *pointset) records(process uint64, packed []byte) (out []byte) {
	wanted := map[uint32]bool{}
	for index := range ps.recorded {
		wanted[index] = len(ps.wanted(index, process)) > 0
	}
	for run := range attunev1.RecordRuns(packed) {
		if wanted[run.Point] {
			out = append(out, run.Packed...)
		}
	}
	return out
}
