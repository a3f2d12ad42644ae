// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/internal/objfile"
)

// way is how a program is under control when the points are asked for.
type way struct {
	name   string
	inside bool // with DMLib
	late   bool // which is brought in after the request
}

var (
	preloaded = way{name: "DMLib preloaded", inside: true}
	injected  = way{name: "from nothing", inside: true, late: true}
	outside   = way{name: "kernel probes alone"}
)

// row is a program with more than a hundred functions that it calls all the
// time.
type row struct {
	name      string
	command   []string
	object    string
	functions []string // the hundred, and one more
	way       way
	limit     present.Figure // what they may take, milliseconds
}

// rows lists what is measured.
func rows(ctx context.Context, programs workload.Catalogue) (all []row, err error) {
	many, err := programs.ManyFunctions(ctx)
	if err != nil {
		return nil, err
	}
	own := row{name: "own functions", command: []string{many}, object: programName(many)}
	library := row{name: "a library's", command: []string{many}, object: "libmany.so"}
	for i := range hundred {
		own.functions = append(own.functions, fmt.Sprintf("own_%02d", i))
		library.functions = append(library.functions, fmt.Sprintf("library_%02d", i))
	}
	own.functions, library.functions = append(own.functions, "many_helper"), append(library.functions, "library_last")
	python := row{name: "python3", command: programs.ManyCalls(), object: programName(workload.DebianPython)}
	return append(all, own.by(preloaded, soon), own.by(injected, late), own.by(outside, late), library.by(preloaded, soon),
		python.by(preloaded, soon), python.by(outside, late)), nil
}

func (r row) by(w way, limit present.Figure) row {
	r.way, r.limit = w, limit
	return r
}

// find finds the functions of a program that it calls all the time, by counting
// the calls of as many as begin with Py.
func (r row) find(ctx context.Context) (functions []string, err error) {
	file, err := objfile.Open(r.command[0])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, err := file.Functions("Py*")
	if err != nil {
		return nil, err
	}
	var candidates []string
	for _, f := range found {
		candidates = append(candidates, f.Name)
	}
	n, err := newNode(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	p, err := r.by(outside, late).start(ctx, n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	return n.called(ctx, p.cmd.Process.Pid, r.object, candidates[:min(len(candidates), 1000)], hundred+1)
}

// start runs the program under control of a node, or alone if it is to be
// entered later.
func (r row) start(ctx context.Context, n *node) (*program, error) {
	var env []string
	if r.way.inside && !r.way.late {
		env = n.joined.Controller.Environment()
	}
	p, err := start(ctx, r.command, env)
	if err != nil || r.way.late {
		return p, err
	}
	pid := p.cmd.Process.Pid
	if err := n.joined.Controller.Follow(pid); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, n.knows(ctx, pid)
}

// mechanisms lists by what points are served.
func (s seen) mechanisms() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, s.by[name]))
	}
	return strings.Join(parts, ", ")
}
