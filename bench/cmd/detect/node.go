// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// attuned is the service's program.
const attuned = "bin/attuned"

// ahead is how long the process of a session has had to start when it is needed: more than
// it takes.
const ahead = 500 * time.Millisecond

// helpersOf are those of a program that read what belongs to processes, as the service's do.
func helpersOf(program string) *readers.Pool {
	return readers.New(readers.Options{Command: []string{program, readers.Argument}})
}

// served is the controller of a session.
type served interface {
	Start(ctx context.Context) error
	FollowProcess(process *procid.Process) error
	Stop(ctx context.Context) error
}

// node is discovery and an Analyzer, and a session for what is found.
type node struct {
	attunev1.ProbeServiceClient

	watcher *discover.Watcher
	session served
	began   func() error   // begins the session, the first time
	ends    []func() error // of what has begun, in this order

	mu     sync.Mutex // guards what follows
	seen   map[int]int64
	placed map[int]int64
}

// newNode makes a node for a program, whose session is in a process of attuned's, as the
// service has it, or inside this process.
func newNode(ctx context.Context, dir string, inside bool, program string) (*node, error) {
	n := &node{seen: make(map[int]int64), placed: make(map[int]int64)}
	if err := n.begin(ctx, dir, inside); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.watcher.SetRegistrations([]*attunev1.Registration{registration(program)})
	return n, nil
}

// begin begins all but the session.
func (n *node) begin(ctx context.Context, dir string, inside bool) error {
	dir, err := os.MkdirTemp(dir, "node")
	if err != nil {
		return err
	}
	address := filepath.Join(dir, "analyzer")
	if err := n.serveAnalyzer(ctx, address); err != nil {
		return err
	}
	helpers := helpersOf(attuned)
	n.ends = append(n.ends, helpers.Close)
	if n.watcher, err = discover.New(discover.Options{Handler: n, Readers: helpers}); err != nil {
		return err
	}
	allowed := func(string) string { return "" }
	config := controller.Config{
		ID: "bench", GatePath: filepath.Join(dir, "gate"), Source: n.watcher.Source(uint32(os.Getuid())), StateDir: filepath.Join(dir, "state"),
		Analyzer: fixed("unix:" + address), UseBPF: true, Budget: 1, Readers: helpers, Log: slog.New(n.listen()),
		Session: controller.Session{
			Registration: "bench", Job: &attunev1.Job{Id: "bench"}, Mode: "observe", User: authn.Self(), Owner: authn.Self(),
		},
		Policy: func() *policy.Policy { return nil }, Denied: allowed, Untouched: allowed,
		Over: func([]string, error) {}, Asked: func(*attunev1.ManageResponse) {}, Answered: func(*attunev1.ActionResult) {},
	}
	if err := n.newSession(ctx, inside, config); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- n.watcher.Run(watching) }()
	n.ends = append(n.ends, func() error { cancel(); return <-watched })
	return nil
}

// serveAnalyzer has an Analyzer that asks for its measure point in every process that there is.
func (n *node) serveAnalyzer(ctx context.Context, address string) error {
	a, err := analyzer.New(analyzer.Config{Mode: "observe", JobID: "bench", NoTunlets: true, Probes: []string{"detected:detected_call"}})
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", address)
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(serving, listener) }()
	n.ends = append(n.ends, func() error { a.Stop(serving); cancel(); return <-ended })
	if err := a.Start(serving); err != nil {
		return err
	}
	conn, err := grpc.NewClient("unix:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	n.ends = append(n.ends, conn.Close)
	n.ProbeServiceClient = attunev1.NewProbeServiceClient(conn)
	return nil
}

// newSession makes the session, which begins with the first process.
func (n *node) newSession(ctx context.Context, inside bool, config controller.Config) (err error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.ends = append(n.ends, func() error { cancel(); return nil })
	if inside {
		n.session, err = controller.New(config)
	} else {
		pool := child.NewPool(child.Options{Program: []string{attuned, child.Word}})
		ended := make(chan struct{})
		go func() { defer close(ended); pool.Run(running) }()
		n.ends = append(n.ends, func() error { cancel(); <-ended; return nil })
		n.session, err = child.New(config, pool)
		beat.Pause(ctx, ahead)
	}
	n.began = sync.OnceValue(func() error {
		err := n.session.Start(running)
		if err == nil {
			n.ends = append(n.ends, func() error {
				ctx, cancel := context.WithTimeout(running, patience)
				defer cancel()
				return n.session.Stop(ctx)
			})
		}
		return err
	})
	return err
}

// fixed is an Analyzer's address.
type fixed string

// Find implements link.Finder.
func (f fixed) Find(context.Context) (link.Peer, <-chan struct{}, error) {
	return link.Peer{Address: string(f)}, nil, nil
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
		if n.began() == nil {
			_ = n.session.FollowProcess(f.Held) // what has ended is not instrumented, and counts as such
		}
		_ = f.Held.Close()
	}()
	return true
}

// Mismatch implements discover.Handler.
func (n *node) Mismatch(*attunev1.Mismatch) {}

func (n *node) note(when map[int]int64, pid int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	when[pid] = clock.Monotonic().Nanoseconds()
}

func (n *node) at(when map[int]int64, pid int) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return when[pid]
}
