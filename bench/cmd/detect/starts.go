// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// patience bounds whatever is waited for: what takes longer has failed.
	patience = 20 * time.Second
	// calls is how often the program calls the probed function from main on.
	calls = 100
	// settle is how long the counts of a process are waited for.
	settle = 2 * time.Second
)

// starts is what was measured of processes that a registration means, in
// milliseconds since their exec.
type starts struct {
	Seen []float64 `json:"seen_ms"`
	// Instrumented is when calls were counted from, at the latest; Known when the
	// controller had taken over what the kernel counted until then.
	Instrumented []float64 `json:"instrumented_ms"`
	Known        []float64 `json:"known_ms"`
	Main         []float64 `json:"main_ms"`
	// SeenBefore is the share of the processes that were seen before main began,
	// PlacedBefore of those whose every call was counted; Counted is the share of
	// the calls.
	SeenBefore   float64 `json:"seen_before_main"`
	PlacedBefore float64 `json:"instrumented_before_main"`
	Counted      float64 `json:"calls_counted"`
}

// timeStarts starts processes one after the other, in one session whose measure
// point is known, and returns how long after its exec the first one, with which the session
// began, was known to the controller, in milliseconds.
func timeStarts(ctx context.Context, dir string, inside bool, p programs, runs int) (s starts, first float64, err error) {
	n, err := newNode(ctx, dir, inside, p.program)
	if err != nil {
		return s, 0, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var counted uint64
	for i := range runs + 1 {
		run, err := n.time(ctx, p)
		if err != nil {
			return s, 0, err
		}
		if i == 0 { // begins the session, which puts the probe on the file
			first = run.since(run.placed)
			continue
		}
		s.add(run)
		counted += run.hits
	}
	s.SeenBefore, s.PlacedBefore = s.SeenBefore/float64(runs), s.PlacedBefore/float64(runs)
	s.Counted = float64(counted) / float64(calls*runs)
	return s, first, nil
}

// run is what was seen of one process; times of CLOCK_MONOTONIC in nanoseconds.
// placed is when the controller had made the kernel's watch its own: the kernel
// may have counted before.
type run struct {
	executed, main, seen, placed int64
	hits                         uint64
}

// since is how long after the exec something was, in milliseconds.
func (r run) since(at int64) float64 { return float64(at-r.executed) / 1e6 }

func (s *starts) add(r run) {
	s.Seen, s.Main = append(s.Seen, r.since(r.seen)), append(s.Main, r.since(r.main))
	s.Known = append(s.Known, r.since(r.placed))
	// Whose every call was counted was instrumented when main began, if not
	// before: nobody can tell from outside when between exec and main.
	instrumented := r.placed
	if r.hits == calls {
		instrumented = min(r.placed, r.main)
		s.PlacedBefore++
	}
	s.Instrumented = append(s.Instrumented, r.since(instrumented))
	if r.seen < r.main {
		s.SeenBefore++
	}
}

// programs are the program that is found and what starts it, which is the same file.
type programs struct{ program, launcher string }

// compile builds the program.
func compile(ctx context.Context, dir string) (programs, error) {
	program, err := workload.Catalogue{Sources: workload.Repository.Sources, Cache: dir}.Compile(ctx, "detected")
	if err != nil {
		return programs{}, err
	}
	launcher := filepath.Join(dir, "launcher")
	return programs{program, launcher}, os.Link(program, launcher)
}

// time starts one process and takes what was seen of it.
func (n *node) time(ctx context.Context, p programs) (r run, err error) {
	command := exec.CommandContext(ctx, p.launcher, p.program)
	in, out, err := measure.StartPiped(command)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, in.Close(), command.Wait()) }()
	line, err := out.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return r, err
	}
	if _, err := fmt.Sscan(line, &r.executed, &r.main); err != nil {
		return r, fmt.Errorf("program says %q: %w", line, err)
	}
	pid := command.Process.Pid
	if err := measure.Await(ctx, patience, "instrumentation", func() bool { return n.at(n.placed, pid) != 0 }); err != nil {
		return r, err
	}
	r.seen, r.placed = n.at(n.seen, pid), n.at(n.placed, pid)
	r.hits, err = n.hits(ctx, pid)
	return r, err
}

// hits waits until all calls of a process were counted, or no more come.
func (n *node) hits(ctx context.Context, pid int) (hits uint64, err error) {
	for end := time.Now().Add(settle); ; time.Sleep(5 * time.Millisecond) {
		list, err := n.ListProbes(ctx, &attunev1.ListProbesRequest{Pids: []int32{int32(pid)}})
		if err != nil && time.Now().After(end) {
			return hits, err
		}
		for _, p := range list.GetProbes() {
			hits = max(hits, p.GetHits())
		}
		if hits == calls || time.Now().After(end) {
			return hits, nil
		}
	}
}
