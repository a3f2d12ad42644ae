// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// maxItems bounds the threads, sockets or pipes of a process that expressions
	// see, so that one about all of them stays below mostCost.
	maxItems = 512
	// staleAfter is how long an item counts that is not read any more. Each is
	// read in turn: of 512 threads, 64 in a round of at most 250 ms.
	staleAfter = 2500 * time.Millisecond
)

// itemKey names a thread or descriptor for good.
type itemKey struct {
	number int
	life   uint64 // start time, or inode
}

// reading is an item as it was read last.
type reading[D, V any] struct {
	at    time.Time
	raw   D
	value *V // nil: read once, so that no rate is known
}

// items are what is known of a process' details of one kind. D is how they are
// read, V what expressions see of it. The zero value knows nothing.
type items[D, V any] struct {
	rounds int // in which the kind was read
	last   map[itemKey]reading[D, V]
}

// read takes the items of one round, and forgets those that are gone.
func (i *items[D, V]) read(at time.Time, list []D, key func(D) itemKey, show func(before, now D, seconds float64) V) {
	if i.last == nil {
		i.last = map[itemKey]reading[D, V]{}
	}
	i.rounds++
	maps.DeleteFunc(i.last, func(_ itemKey, r reading[D, V]) bool { return at.Sub(r.at) > staleAfter })
	for _, now := range list {
		k := key(now)
		before, known := i.last[k]
		if !known && len(i.last) >= maxItems {
			continue
		}
		next := reading[D, V]{at: at, raw: now}
		if seconds := at.Sub(before.at).Seconds(); known && seconds > 0 {
			v := show(before.raw, now, seconds)
			next.value = &v
		}
		i.last[k] = next
	}
}

// list is what expressions see, in the order of numbers: what was read twice, so
// that rates are known; false: the kind was not read twice yet.
func (i *items[D, V]) list() ([]*V, bool) {
	out := []*V{}
	keys := slices.SortedFunc(maps.Keys(i.last), func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.life, b.life))
	})
	for _, k := range keys {
		if v := i.last[k].value; v != nil {
			out = append(out, v)
		}
	}
	return out, i.rounds >= 2
}

// details is what is known of a process beside its signals, since it was asked
// for.
type details struct {
	threads items[sdk.ThreadDetail, thread]
	sockets items[sdk.SocketDetail, socket]
	pipes   items[sdk.PipeDetail, pipe]
	memory  *sdk.MemoryDetails
	// fresh are the kinds of the latest sample.
	fresh []sdk.Detail
	// refusal says why a kind cannot be read; empty: all can.
	refusal string
}

// take takes the details of a sample.
func (d *details) take(s sdk.Sample) {
	d.fresh, d.refusal = d.fresh[:0], ""
	if t := s.Details.Threads; t != nil {
		d.threads.read(s.At, t.Items, threadKey, showThread)
		d.got(sdk.DetailThreads, t.Error, len(t.Items))
	}
	if t := s.Details.Sockets; t != nil {
		d.sockets.read(s.At, t.Items, socketKey, showSocket)
		d.got(sdk.DetailSockets, t.Error, len(t.Items))
	}
	if t := s.Details.Pipes; t != nil {
		d.pipes.read(s.At, t.Items, pipeKey, showPipe)
		d.got(sdk.DetailPipes, t.Error, len(t.Items))
	}
	if m := s.Details.Memory; m != nil {
		d.memory = m
		d.got(sdk.DetailMemory, m.Error, 0)
	}
}

// got notes that a kind was read. An error beside items is about some of them
// only, and of no matter.
func (d *details) got(kind sdk.Detail, trouble string, items int) {
	d.fresh = append(d.fresh, kind)
	if trouble != "" && items == 0 {
		d.refusal = trouble
	}
}

// news says whether any of some kinds was read in the latest sample.
func (d *details) news(kinds []sdk.Detail) bool {
	return slices.ContainsFunc(kinds, func(k sdk.Detail) bool { return slices.Contains(d.fresh, k) })
}
