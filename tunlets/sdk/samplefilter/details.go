// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"iter"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// kinds is a set of kinds of details, a bit each.
type kinds uint32

const (
	withThreads = kinds(1 << attunev1.DetailKind_DETAIL_KIND_THREADS)
	withSockets = kinds(1 << attunev1.DetailKind_DETAIL_KIND_SOCKETS)
	withPipes   = kinds(1 << attunev1.DetailKind_DETAIL_KIND_PIPES)
	withMemory  = kinds(1 << attunev1.DetailKind_DETAIL_KIND_MEMORY)
)

// kindsOf makes a set of those that there are.
func kindsOf(list []attunev1.DetailKind) (set kinds) {
	for _, k := range list {
		if k >= 0 && k < 32 {
			set |= 1 << k
		}
	}
	return set & (withThreads | withSockets | withPipes | withMemory)
}

// list is the set's elements, in order.
func (k kinds) list() (list []attunev1.DetailKind) {
	for kind := attunev1.DetailKind(0); kind < 32; kind++ {
		if k&(1<<kind) != 0 {
			list = append(list, kind)
		}
	}
	return list
}

// SetDetails takes over which details are wanted of a process, with all of its
// samples, and says whether that is new. Whoever does so calls Forget at the end
// of the process.
func (f *Filter) SetDetails(i *attunev1.DetailInterest) (changed bool) {
	wanted := kindsOf(i.GetKinds())
	if f.details[i.GetProcess()] == wanted {
		return false
	}
	if wanted == 0 {
		delete(f.details, i.GetProcess())
		return true
	}
	if f.details == nil {
		f.details = make(map[uint64]kinds)
	}
	f.details[i.GetProcess()] = wanted
	return true
}

// Details yields the processes of which details are wanted, in no order, each
// with the kinds of them.
func (f *Filter) Details() iter.Seq2[uint64, []attunev1.DetailKind] {
	return func(yield func(uint64, []attunev1.DetailKind) bool) {
		for process, wanted := range f.details {
			if !yield(process, wanted.list()) {
				return
			}
		}
	}
}

// detailed says whether a sample has details.
func detailed(s *attunev1.Sample) bool { return s.GetDetails() != nil }

// of returns a sample with no other details than those of the set; the sample
// itself where it has no others.
func (k kinds) of(s *attunev1.Sample) *attunev1.Sample {
	d := s.GetDetails()
	has := present(d)
	if d == nil || has&^k == 0 && has != 0 {
		return s
	}
	out := &attunev1.Sample{Process: s.GetProcess(), Tables: s.GetTables()}
	if has&k == 0 {
		return out
	}
	out.Details = &attunev1.Details{}
	if k&withThreads != 0 {
		out.Details.Threads = d.GetThreads()
	}
	if k&withSockets != 0 {
		out.Details.Sockets = d.GetSockets()
	}
	if k&withPipes != 0 {
		out.Details.Pipes = d.GetPipes()
	}
	if k&withMemory != 0 {
		out.Details.Memory = d.GetMemory()
	}
	return out
}

// hasOne says whether a kind of details was read, and whether there is any.
func hasOne(kind attunev1.DetailKind, d *attunev1.Details) (has, read bool) {
	if present(d)&kindsOf([]attunev1.DetailKind{kind}) == 0 {
		return false, false
	}
	switch kind {
	case attunev1.DetailKind_DETAIL_KIND_SOCKETS:
		has = d.GetSockets().GetTotal() > 0
	case attunev1.DetailKind_DETAIL_KIND_PIPES:
		has = d.GetPipes().GetTotal() > 0
	default:
		has = true // every process has threads and memory
	}
	return has, true
}

// present is the set of details that there are.
func present(d *attunev1.Details) (set kinds) {
	if d.GetThreads() != nil {
		set |= withThreads
	}
	if d.GetSockets() != nil {
		set |= withSockets
	}
	if d.GetPipes() != nil {
		set |= withPipes
	}
	if d.GetMemory() != nil {
		set |= withMemory
	}
	return set
}
