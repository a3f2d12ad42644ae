// SPDX-License-Identifier: Apache-2.0

package discover

import "maps"

// gifts are the processes that were told of, and to whom. They belong to one
// goroutine.
type gifts map[key]*gift

// gift says whom a process was offered to.
type gift struct {
	// to is the id of the registration that has taken it; "": none.
	to string
	// program is what it executed then.
	program image
	// offered are the registrations by id that the program was offered to or kept from.
	offered map[string]bool
}

// of returns what is known of a process and the program that it executes, which nothing else
// knows of yet if it is new.
func (g gifts) of(c *candidate) *gift {
	now := c.image()
	known := g[c.key()]
	switch {
	case known == nil:
		known = &gift{program: now, offered: make(map[string]bool)}
	case known.program != now:
		known.program = now
		clear(known.offered)
	}
	return known
}

// taken says whether a registration has the process.
func (g gifts) taken(k key) bool {
	known := g[k]
	return known != nil && known.to != ""
}

// dropRegistrations takes which registrations are as they were: what was decided for the
// others is forgotten.
func (g gifts) dropRegistrations(same map[string]bool) {
	for _, known := range g {
		if !same[known.to] {
			known.to = "" // its session ends with the registration, or because that is another one
		}
		// What is registered anew may mean what it did not mean before.
		maps.DeleteFunc(known.offered, func(id string, _ bool) bool { return !same[id] })
	}
}

// prune forgets processes that are not there any more.
func (g gifts) prune(there map[int]uint64) {
	maps.DeleteFunc(g, func(k key, _ *gift) bool { return there[k.pid] != k.start })
}
