// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// endsWait is how long threads that may be pairs wait for their pipes and sockets,
	// which come later than they do themselves.
	endsWait = 800 * time.Millisecond
	// patience is how long they are without a finding.
	patience = 2500 * time.Millisecond
	// baseline is how many values of the objective there must be before a proposal.
	baseline = 6
	// crowdedFor is how long a pair must lack its CPU before it is set free.
	crowdedFor = time.Second
	// maxTries on one node.
	maxTries = 3
	// maxTasks bounds the threads that are looked at on one node.
	maxTasks = 4096
)

type state uint8

const (
	quiet    state = iota // signals only
	looking               // threads, pipes and sockets are read of those that are suspect
	counting              // something was found: the objective is reported, for a baseline
	judged                // a proposal is on its way
)

// taskKey names a thread of a node for good.
type taskKey struct {
	process sdk.Handle
	thread  sdk.ThreadKey
}

// finding is what is to be changed, and how it is judged.
type finding struct {
	changes []sdk.Change
	members []*process // whose progress counts
	calls   bool       // progress is calls of read and write, not CPU time
	wide    bool       // threads are bound to more than a core: not to be judged by CPU time
	scope   string
	gain    float64
	reason  string
	pairs   []pair
}

// node knows the processes of one node.
type node struct {
	host      string
	processes map[sdk.Handle]*process
	tasks     map[taskKey]*task // since looking began

	state    state
	since    time.Time // when the state began
	until    time.Time // quiet: not before this
	backoff  sdk.Backoff
	found    finding
	values   int // of the objective since counting began
	failures int
	sequence int
	proposal string             // judged: its id
	joined   map[string]*joined // pairs that were joined, by proposal
}

func newNode(host string) *node {
	return &node{
		host: host, processes: map[sdk.Handle]*process{}, tasks: map[taskKey]*task{},
		joined: map[string]*joined{},
	}
}

func (n *node) enter(s state, now time.Time) { n.state, n.since = s, now }

// sortedProcesses lists the processes in a fixed order, so that a replay says the same.
func sortedProcesses(n *node) []*process {
	out := make([]*process, 0, len(n.processes))
	for _, h := range slices.Sorted(maps.Keys(n.processes)) {
		out = append(out, n.processes[h])
	}
	return out
}

// sortedTasks lists the threads likewise.
func sortedTasks(n *node) []*task {
	out := make([]*task, 0, len(n.tasks))
	for _, t := range n.tasks {
		out = append(out, t)
	}
	slices.SortFunc(out, (*task).compare)
	return out
}

// look goes on after a round of samples, which was at the given time.
func (n *node) look(h *sdk.Host, round time.Time) {
	n.watchJoined(h)
	switch n.state {
	case quiet:
		if !h.Now().Before(n.until) {
			n.begin(h)
		}
	case looking:
		n.search(h)
	case counting, judged:
		n.count(h, round)
	}
}

// begin looks at the threads of those that are suspect, and of those that they may
// talk to.
func (n *node) begin(h *sdk.Host) {
	all := sortedProcesses(n)
	if !slices.ContainsFunc(all, func(p *process) bool { return p.waits() || p.wakes() }) {
		return
	}
	clear(n.tasks)
	for _, p := range all {
		if p.waits() || p.talks(leastBound) {
			p.lookAt(h)
		}
	}
	n.enter(looking, h.Now())
}

// read takes what was read of a process' threads, pipes and sockets.
func (n *node) read(p *process, at time.Time, d sdk.Details) {
	p.ends.read(d)
	if d.Threads == nil {
		return
	}
	for _, item := range d.Threads.Items {
		key := taskKey{p.handle, sdk.KeyOf(&item)}
		t := n.tasks[key]
		if t == nil {
			if len(n.tasks) >= maxTasks {
				continue
			}
			t = &task{process: p}
			n.tasks[key] = t
		}
		t.add(at, item)
	}
}

// search looks for something to change among the threads that were read.
func (n *node) search(h *sdk.Host) {
	unread := slices.ContainsFunc(sortedProcesses(n), func(p *process) bool { return p.looked && p.talks(leastBound) && !p.ends.known() })
	if unread && h.Now().Sub(n.since) < endsWait {
		return
	}
	found, ok := n.join()
	if !ok {
		found, ok = n.free()
	}
	switch {
	case ok:
		n.found, n.values = found, 0
		n.enter(counting, h.Now())
		for _, p := range sortedProcesses(n) {
			p.lookAway(h)
		}
		for _, p := range found.members {
			p.member = true
			h.Want(p.handle, sdk.AllSamples())
		}
	case h.Now().Sub(n.since) > patience:
		n.nothing(h)
	}
}

// nothing waits after a look without a finding, longer each time.
func (n *node) nothing(h *sdk.Host) {
	n.calm(h)
	n.until = h.Now().Add(n.backoff.Next())
}

// count reports the objective, and proposes when there is a baseline.
func (n *node) count(h *sdk.Host, round time.Time) {
	value, ok := n.found.progress(round)
	if !ok {
		return
	}
	if n.state == counting && n.found.unsteady(value) {
		if n.found.wide {
			n.nothing(h)
			return
		}
		n.found.calls, n.found.scope, n.values = false, n.timeScope(), 0
		return
	}
	n.values++
	h.Objective(n.found.scope, value)
	if n.state == counting && n.values >= baseline {
		n.propose(h)
	}
}

// progress is what the members got done between the last two samples; false if it
// is not known of all.
func (f finding) progress(round time.Time) (sum float64, ok bool) {
	for _, p := range f.members {
		v, known := p.progress(f.calls)
		if !known || !p.heard.Equal(round) {
			return 0, false
		}
		sum += v
	}
	return sum, len(f.members) > 0
}

// unsteady says that calls are no measure of how bound threads get on: they read and
// write now and then, much at a time.
func (f finding) unsteady(value float64) bool {
	return f.calls && len(f.pairs) == 0 && value < leastCalls
}

// timeScope is that of the objective where CPU time is counted and not calls.
func (n *node) timeScope() string { return "cpu-time/" + n.host }

// calm looks at nothing any more.
func (n *node) calm(h *sdk.Host) {
	n.found, n.proposal = finding{}, ""
	clear(n.tasks)
	n.enter(quiet, h.Now())
	for _, p := range sortedProcesses(n) {
		p.member = false
		p.lookAway(h)
		p.rest(h)
	}
}

// halfEnded is why pairs are set free that have lost a process.
const halfEnded = "a thread that was put on a CPU with another one has ended"

// left forgets a process that has ended. Of those that come after the last one nothing is known.
func (n *node) left(h *sdk.Host, p *process) {
	delete(n.processes, p.handle)
	if len(n.processes) == 0 {
		n.backoff.Reset()
	}
	maps.DeleteFunc(n.tasks, func(k taskKey, _ *task) bool { return k.process == p.handle })
	if slices.Contains(n.found.members, p) {
		switch {
		case n.state == counting:
			n.calm(h) // what was found is not so any more
		case len(n.found.pairs) > 0:
			h.Withdraw(n.proposal, halfEnded)
			n.found.pairs = nil
		}
	}
	n.found.members = slices.DeleteFunc(n.found.members, func(o *process) bool { return o == p })
	for _, id := range slices.Sorted(maps.Keys(n.joined)) {
		if slices.Contains(n.joined[id].members, p) {
			h.Withdraw(id, halfEnded)
			n.forget(h, id)
		}
	}
}
