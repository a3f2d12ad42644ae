// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxAnswer bounds what a tunlet answers to one call, bytes: go-plugin has no
// bound of its own, and what is small on the wire can be a hundred times as much
// in memory.
const maxAnswer = 4 << 20

// launcher starts a program that serves tunlets, again and again.
type launcher struct {
	program   string
	arguments []string
	copyOf    string // the file that errors name; empty: program
	limits    Limits
	grow      bool // the limits grow with what runs in the process
	tempDir   string
	timeout   time.Duration
	said      *limitedLog // what the process says
	host      *identity
	costs     *account
}

// running is a process that serves. It is the life of a tunlet that has it for
// itself.
type running struct {
	client *plugin.Client
	conn   grpc.ClientConnInterface
	proc   *process
	dir    string // of its socket
	said   *limitedLog

	mu     sync.Mutex // leaf lock
	killed string     // why the host killed it
}

// run starts a process, and greets it before it counts as started. An end of ctx, or
// of the timeout, until then kills it.
func (l *launcher) run(ctx context.Context, greet func(context.Context, grpc.ClientConnInterface) error) (*running, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, fmt.Errorf("no answer within %v", l.timeout))
	defer cancel()
	var current atomic.Pointer[process]
	stop := context.AfterFunc(ctx, func() {
		if p := current.Load(); p != nil {
			_ = p.Kill(context.Background())
		}
	})
	defer stop()
	dir, err := os.MkdirTemp(l.tempDir, "attune-tunlet-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for its socket: %w", err)
	}
	stderr := &tail{}
	config, introduction, err := l.host.meet()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make its certificate: %w", err), os.RemoveAll(dir))
	}
	client := l.client(ctx, dir, config, stderr, func(private string, cmd *exec.Cmd) *process {
		p := newProcess(l.program, l.arguments, slices.Concat(environment(private), introduction, cmd.Env), l.limits, l.costs)
		p.grow = l.grow
		current.Store(p)
		return p
	})
	conn, err := dial(client)
	if err == nil {
		err = greet(ctx, conn)
	}
	if err == nil && ctx.Err() == nil {
		return &running{client: client, conn: conn, proc: current.Load(), dir: dir, said: l.said}, nil
	}
	err = l.startError(ctx, client, current.Load(), stderr, err)
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// startError ends a start that failed, and says why in the words that help
// most: the time-out, what the tunlet said last, or the error.
func (l *launcher) startError(ctx context.Context, client *plugin.Client, p *process, stderr *tail, err error) error {
	if p != nil {
		_ = p.Kill(context.Background())
	}
	client.Kill()
	l.said.flush()
	switch missing := missingInterpreter(l.program, cmp.Or(l.copyOf, l.program)); {
	case errors.Is(err, errPermanent):
		return err
	case missing != nil:
		return missing
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p != nil && p.state != nil && p.state.ExitCode() == sdk.RefusedExitCode:
		return fmt.Errorf("%s: %w", stderr.all(), errPermanent)
	case p != nil && p.state != nil && stderr.line() != "":
		return fmt.Errorf("%s: %s", p.state, stderr.line())
	case p != nil && p.state != nil && p.state.Exited():
		return fmt.Errorf("%s", p.state)
	}
	return err
}

// client configures go-plugin for one start, with its socket in dir; run makes
// the process, given its private directory and what go-plugin wants in its
// environment. The checksum of the program is verified before, since
// go-plugin does so only for commands that it runs itself.
func (l *launcher) client(ctx context.Context, dir string, config *tls.Config, stderr *tail, run func(string, *exec.Cmd) *process) *plugin.Client {
	named := l.said.plugin().Named(filepath.Base(l.program))
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        config,
		SkipHostEnv:      true,
		StartTimeout:     l.timeout,
		Logger:           l.said.plugin(),
		Stderr:           stderr,
		SyncStdout:       &lineLogger{log: l.said},
		SyncStderr:       &leveledLogger{to: named},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
			grpc.WithInitialWindowSize(attunev1.FlowWindow), grpc.WithInitialConnWindowSize(attunev1.FlowWindow),
		},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, private string) (runner.Runner, error) {
			return run(private, cmd), ctx.Err()
		},
	})
}

// tunletPath is where a tunlet finds programs.
const tunletPath = "/usr/local/bin:/usr/bin:/bin"

// environment returns all that a tunlet gets of the host's environment. Nothing
// that would load DMLib into it or make it part of the job is there. Python writes no
// files beside its modules, which would make a tunlet of several files another one.
func environment(dir string) []string {
	env := []string{"PATH=" + tunletPath, "TMPDIR=" + dir, "PYTHONDONTWRITEBYTECODE=1"}
	for _, name := range []string{"HOME", "USER", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// dial starts the process and returns the connection to it.
func dial(client *plugin.Client) (grpc.ClientConnInterface, error) {
	conn, err := client.Client()
	if err != nil {
		return nil, err
	}
	over, ok := conn.(*plugin.GRPCClient)
	if !ok {
		return nil, fmt.Errorf("it is reached by a %T: %w", conn, errPermanent)
	}
	return over.Conn, nil
}

// Kill implements life.
func (r *running) Kill(reason string) {
	r.mu.Lock()
	r.killed = cmp.Or(r.killed, reason)
	r.mu.Unlock()
	_ = r.proc.Kill(context.Background())
}

// done implements life.
func (r *running) done() <-chan struct{} { return r.proc.exited }

// measure implements life.
func (r *running) measure() (usage, bool) { return r.proc.measure() }

// ended implements life.
func (r *running) ended() error {
	<-r.proc.exited
	r.client.Kill()
	_ = os.RemoveAll(r.dir)
	r.said.flush()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed != "" {
		return errors.New(r.killed)
	}
	return errors.New(r.proc.state.String())
}
