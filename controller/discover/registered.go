// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// registered is what is looked for. It belongs to one goroutine.
type registered struct {
	usable []*registration // in the order of who comes first
	asked  []*attunev1.Registration
}

// set takes a set of registrations. It returns those that are as they were, and those that
// mean nobody, with the reason; all by id. unchanged: others mean nobody either.
func (l *registered) set(registrations []*attunev1.Registration) (same map[string]bool, unusable map[string]string, unchanged bool) {
	before := make(map[string]*registration, len(l.usable))
	for _, r := range l.usable {
		before[r.GetId()] = r
	}
	same, unusable = make(map[string]bool, len(registrations)), make(map[string]string)
	l.asked, l.usable = registrations, nil
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
	directory := newDirectory(ctx)
	unchanged = true
	for _, r := range registrations {
		compiled := before[r.GetId()]
		if same[r.GetId()] = compiled != nil && proto.Equal(compiled.Registration, r); !same[r.GetId()] {
			var err error
			if compiled, err = compile(r, directory.id); err != nil {
				unusable[r.GetId()] = err.Error()
				continue
			}
		}
		unchanged = unchanged && same[r.GetId()]
		l.usable = append(l.usable, compiled)
	}
	slices.SortFunc(l.usable, precedes)
	return same, unusable, unchanged && len(l.usable) == len(before)
}

// anyWants says whether somebody who goes under this name may be meant.
func anyWants(usable []*registration, name string) bool {
	return slices.ContainsFunc(usable, func(r *registration) bool { return r.fits(name, r.uid) })
}

// setTarget notes what the path of a registration names in the end; false if that is
// nothing new. Whoever looks at a process meanwhile has the registrations of before.
func (l *registered) setTarget(of *registration, target string) bool {
	i := slices.Index(l.usable, of)
	if i < 0 || of.target == target {
		return false
	}
	changed := *of
	changed.target = target
	l.usable = slices.Clone(l.usable)
	l.usable[i] = &changed
	return true
}

// names are the file names by which the kernel finds what is meant.
func (l *registered) names() (names []procevent.Name) {
	for _, r := range l.usable {
		names = append(names, r.names()...)
	}
	return names
}
