// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/local"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// patience bounds whatever is waited for: what takes longer has failed.
	patience = 20 * time.Second
	// calls is how often the program calls the probed function from main on.
	calls = 100
	// settle is how long the counts of a process are waited for.
	settle = 300 * time.Millisecond
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
// point is known.
func timeStarts(ctx context.Context, dir string, runs int) (s starts, err error) {
	program, launcher, err := compile(ctx, dir)
	if err != nil {
		return s, err
	}
	n, err := newNode(ctx, dir, program)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	var counted uint64
	for i := range runs + 1 {
		run, err := n.time(ctx, launcher, program)
		if err != nil {
			return s, err
		}
		if i == 0 {
			continue // puts the probe on the file
		}
		s.add(run)
		counted += run.hits
	}
	s.SeenBefore, s.PlacedBefore = s.SeenBefore/float64(runs), s.PlacedBefore/float64(runs)
	s.Counted = float64(counted) / float64(calls*runs)
	return s, nil
}

// run is what was seen of one process; times of CLOCK_MONOTONIC in nanoseconds.
// placed is when the controller had made the kernel's watch its own: the kernel
// may have counted before.
type run struct {
	executed, main, seen, placed int64
	hits                         uint64
}

func (s *starts) add(r run) {
	since := func(at int64) float64 { return float64(at-r.executed) / 1e6 }
	s.Seen, s.Main = append(s.Seen, since(r.seen)), append(s.Main, since(r.main))
	s.Known = append(s.Known, since(r.placed))
	// Whose every call was counted was instrumented when main began, if not
	// before: nobody can tell from outside when between exec and main.
	instrumented := r.placed
	if r.hits == calls {
		instrumented = min(r.placed, r.main)
		s.PlacedBefore++
	}
	s.Instrumented = append(s.Instrumented, since(instrumented))
	if r.seen < r.main {
		s.SeenBefore++
	}
}

// compile builds the program, under its own name and that of its launcher.
func compile(ctx context.Context, dir string) (program, launcher string, err error) {
	program, launcher = filepath.Join(dir, "detected"), filepath.Join(dir, "launcher")
	out, err := exec.CommandContext(ctx, "gcc", "-O2", "-o", program, "bench/workloads/detected.c").CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return program, launcher, os.Link(program, launcher)
}

// node is discovery, and a controller and an Analyzer for what it finds.
type node struct {
	attunev1.ProbeServiceClient

	watcher *discover.Watcher
	joined  *local.Session
	ends    []func() error // of what has begun, in this order

	mu     sync.Mutex // guards what follows
	seen   map[int]int64
	placed map[int]int64
}

func newNode(ctx context.Context, dir, program string) (*node, error) {
	n := &node{seen: make(map[int]int64), placed: make(map[int]int64)}
	if err := n.begin(ctx, dir); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.watcher.SetRegistrations([]*attunev1.Registration{registration(program)})
	return n, nil
}

// begin begins the Analyzer, which asks for its measure point in every process that
// there is, and the controller, which has the processes that are found.
func (n *node) begin(ctx context.Context, dir string) (err error) {
	helpers := helpersOf(attuned)
	n.ends = append(n.ends, helpers.Close)
	if n.watcher, err = discover.New(discover.Options{Handler: n, Readers: helpers}); err != nil {
		return err
	}
	n.joined, err = local.New(local.Options{
		Dir: dir, JobID: "bench", Log: slog.New(n.listen()),
		Analyzer: analyzer.Config{Mode: "observe", NoTunlets: true, Probes: []string{"detected:detected_call"}},
		Controller: controller.Config{
			GatePath: filepath.Join(dir, "gate"), Source: n.watcher.Source(), StateDir: filepath.Join(dir, "state"), UseBPF: true, Budget: 1,
			Readers: helpers,
		},
	})
	n.ends = append(n.ends, n.joined.Close)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(n.joined.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	n.ProbeServiceClient = attunev1.NewProbeServiceClient(conn)
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- n.watcher.Run(watching) }()
	n.ends = append(n.ends, conn.Close, func() error { cancel(); return <-watched }, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		n.joined.Stop(ctx)
		return nil
	})
	if err := errors.Join(n.joined.Start(context.WithoutCancel(ctx)), n.joined.Analyzer.Start(ctx)); err != nil {
		return err
	}
	return n.joined.Controller.AwaitPoints(ctx, 1)
}

// attuned is the service's program.
const attuned = "bin/attuned"

// helpersOf are those of a program that read what belongs to processes, as the service's do.
func helpersOf(program string) *readers.Pool {
	return readers.New(readers.Options{Command: []string{program, readers.Argument}})
}

// close ends what has begun, the last first.
func (n *node) close() (err error) {
	for _, end := range slices.Backward(n.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// registration means a program, whoever runs it.
func registration(program string) *attunev1.Registration {
	return &attunev1.Registration{
		Id: "bench", Executable: program, Mode: "observe", RegisteredUnixNano: time.Now().UnixNano(),
		Owner: &attunev1.Principal{Name: "root", Role: attunev1.Role_ROLE_ADMIN},
	}
}

// Found implements discover.Handler.
func (n *node) Found(f discover.Found) bool {
	if f.Held == nil {
		return false
	}
	n.note(n.seen, f.Held.PID())
	go func() { // as the service does it: discovery goes on meanwhile
		_ = n.joined.Controller.Follow(f.Held.PID()) // what has ended is not instrumented, and counts as such
		_ = f.Held.Close()
	}()
	return true
}

// Mismatch implements discover.Handler.
func (n *node) Mismatch(*attunev1.Mismatch) {}

func (n *node) note(when map[int]int64, pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	when[pid] = monotonic()
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it cannot fail for this clock
	return now.Nano()
}

// time starts one process and takes what was seen of it.
func (n *node) time(ctx context.Context, launcher, program string) (r run, err error) {
	command := exec.CommandContext(ctx, launcher, program)
	in, err := command.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := command.Start(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, in.Close(), command.Wait()) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return r, err
	}
	if _, err := fmt.Sscan(line, &r.executed, &r.main); err != nil {
		return r, fmt.Errorf("program says %q: %w", line, err)
	}
	pid := command.Process.Pid
	if err := await(ctx, "instrumentation", func() bool { return n.at(n.placed, pid) != 0 }); err != nil {
		return r, err
	}
	r.seen, r.placed = n.at(n.seen, pid), n.at(n.placed, pid)
	r.hits, err = n.hits(ctx, pid)
	return r, err
}

func (n *node) at(when map[int]int64, pid int) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return when[pid]
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
