// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// places are CPUs that threads of a team may use.
type places map[int]bool

// add adds those of the threads that a round has read, which may be some of them.
func (p places) add(threads *sdk.ThreadDetails) {
	for _, thread := range threads.Items {
		for cpu := range sdk.CPUList(thread.CPUsAllowed).Numbers() {
			p[cpu] = true
		}
	}
}

// meets says whether there is a CPU that is in both.
func (p places) meets(o places) bool {
	for cpu := range p {
		if o[cpu] {
			return true
		}
	}
	return false
}

// crowd is teams at work that share CPUs, directly or by others between them.
type crowd struct {
	teams   []*team
	places  places
	threads float64 // of all of them
	cpus    float64 // of the one with most of them
	anyone  bool    // there is a team in it of which it is not known which they are
}

// full says that there are several teams and not CPUs enough for all their threads.
func (c *crowd) full() bool {
	return len(c.teams) >= 2 && c.threads > max(c.cpus, float64(len(c.places)))
}

// take takes what another crowd has.
func (c *crowd) take(o *crowd) {
	c.teams = append(c.teams, o.teams...)
	maps.Copy(c.places, o.places)
	c.threads += o.threads
	c.cpus = max(c.cpus, o.cpus)
	c.anyone = c.anyone || o.anyone
}

// alone is a team by itself.
func alone(t *team) *crowd {
	l, ok := t.load()
	c := &crowd{teams: []*team{t}, places: places{}, threads: l.Threads, cpus: l.CPUs, anyone: !ok || !t.placed(l)}
	if !c.anyone {
		maps.Copy(c.places, t.places)
	}
	return c
}

// together takes it that all teams share their CPUs.
func together(teams []*team) *crowd {
	all := &crowd{places: places{}}
	for _, t := range teams {
		l, _ := t.load()
		all.take(&crowd{teams: []*team{t}, threads: l.Threads, cpus: l.CPUs})
	}
	return all
}

// crowds parts teams by the CPUs that they share. One of which it is not known which
// those are, all of them, may share those of every other.
func crowds(teams []*team) (list []*crowd) {
	for _, t := range teams {
		own := alone(t)
		list = slices.DeleteFunc(list, func(c *crowd) bool {
			near := own.anyone || c.anyone || own.places.meets(c.places)
			if near {
				own.take(c)
			}
			return near
		})
		list = append(list, own)
	}
	return list
}

// crowded lists the teams of crowds that are full.
func crowded(list []*crowd) (teams []*team) {
	for _, c := range list {
		if c.full() {
			teams = append(teams, c.teams...)
		}
	}
	return teams
}
