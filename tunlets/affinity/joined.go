// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// crowding is how many times longer than they run the joined threads wait for their
// CPU when others have it: by themselves each waits while the other one runs.
const crowding = 2

const (
	// queueing is the CPUs' worth of waiting, for each CPU that was joined on, that is
	// more than a pair comes to by itself: one of the two always runs or sleeps.
	queueing = 1.5
	// confined is the CPUs' worth of running, for each such CPU, up to which all threads
	// of the processes may be on them.
	confined = 1.1
)

// joined are pairs that a kept proposal put on one CPU each.
type joined struct {
	members []*process
	cpus    map[int]bool
	wasFree bool      // they could run anywhere before
	since   time.Time // since when they lack their CPU; zero: they do not
}

func newJoined(pairs []pair, members []*process) *joined {
	j := &joined{members: members, cpus: map[int]bool{}, wasFree: true}
	for _, p := range pairs {
		j.cpus[p.cpu] = true
		j.wasFree = j.wasFree && !p.a.demand().bound && !p.b.demand().bound
	}
	return j
}

// takeUpJoined returns the pairs that a proposal put on one CPU each before the tunlet was
// started again, of the changes that it made of single threads; nil: it made none. Threads
// could run anywhere before if the value before each of the changes covers what its process
// may use: a thread that was on its CPU already was not changed.
func takeUpJoined(n *node, c sdk.ProposalChange) *joined {
	j := &joined{cpus: map[int]bool{}, wasFree: len(c.Results) == len(c.Earlier.Changes)} // else none says whose it is
	halves := 0
	for i, change := range c.Earlier.Changes {
		p := n.processes[change.Process]
		if _, _, ofThread := strings.Cut(change.Knob, "@"); !ofThread || p == nil {
			continue
		}
		halves++
		j.wasFree = j.wasFree && covers(sdk.CPUList(c.Results[i].Old.String()), p.usable)
		for cpu := range sdk.CPUList(change.Action.Value().String()).Numbers() {
			j.cpus[cpu] = true
		}
		if !slices.Contains(j.members, p) {
			j.members = append(j.members, p)
		}
	}
	if halves == 0 {
		return nil
	}
	j.wasFree = j.wasFree && halves == 2*len(j.cpus)
	return j
}

// crowded says that others have the CPUs: a pair that is not bound could go where
// there is room. One that its program had bound apart would be worse off again.
// Others may be threads that the processes have started since: they inherit the CPU,
// and three that compute on it wait no longer than crowding.
func (j *joined) crowded() bool {
	if !j.wasFree {
		return false
	}
	var run, wait float64
	for _, p := range j.members {
		if _, ok := p.span(); !ok {
			return false
		}
		r, w := p.load()
		run, wait = run+r, wait+w
	}
	cpus := float64(len(j.cpus))
	return wait > crowding*run || wait > queueing*cpus && run <= confined*cpus
}

// taken are the CPUs that pairs have for themselves.
func (n *node) taken() map[int]bool {
	taken := map[int]bool{}
	for _, j := range n.joined {
		maps.Copy(taken, j.cpus)
	}
	return taken
}

// watchJoined sets pairs free whose CPU others have for some time.
func (n *node) watchJoined(h *sdk.Host) {
	for _, id := range slices.Sorted(maps.Keys(n.joined)) {
		j := n.joined[id]
		switch {
		case !j.crowded():
			j.since = time.Time{}
		case j.since.IsZero():
			j.since = h.Now()
		case h.Now().Sub(j.since) >= crowdedFor:
			h.Withdraw(id, "others have the CPU that the threads were put on")
			n.forget(h, id)
			n.until = h.Now().Add(sdk.RetryPause)
		}
	}
}
