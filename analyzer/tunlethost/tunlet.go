// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// errPermanent marks a failure that another start would only repeat.
var errPermanent = errors.New("not started again")

// Tunlet is one running tunlet. Its methods are safe for use by several
// goroutines.
type Tunlet struct {
	info    *attunev1.DescribeResponse
	service attunev1.TunletServiceClient
	client  *plugin.Client
	proc    *process
	dir     string // of its socket

	mu     sync.Mutex // leaf lock
	killed string     // why the host killed it
}

// Info returns the tunlet's account of itself; it is not to be modified.
func (t *Tunlet) Info() *attunev1.DescribeResponse { return t.info }

// Service returns the connection to it. Calls fail once it has ended.
func (t *Tunlet) Service() attunev1.TunletServiceClient { return t.service }

// Kill ends the tunlet at once, because of what reason says. The host then
// deals with it as with any other end.
func (t *Tunlet) Kill(reason string) {
	t.mu.Lock()
	if t.killed == "" {
		t.killed = reason
	}
	t.mu.Unlock()
	_ = t.proc.Kill(context.Background())
}

// starter is what is needed to start one tunlet, again and again.
type starter struct {
	name    string
	path    string
	options map[string]string
	tempDir string
	timeout time.Duration
	log     *slog.Logger
	digests *objfile.Digests
	host    *identity
	sum     string // SHA-256 of the binary at its first start
}

// start starts the tunlet's process, asks it to describe itself, and configures
// it. An end of ctx or of the timeout kills the process.
func (s *starter) start(ctx context.Context) (*Tunlet, error) {
	if err := s.verify(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %v", s.timeout))
	defer cancel()
	var current atomic.Pointer[process]
	stop := context.AfterFunc(ctx, func() {
		if p := current.Load(); p != nil {
			_ = p.Kill(context.Background())
		}
	})
	defer stop()
	dir, err := os.MkdirTemp(s.tempDir, "attune-tunlet-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for its socket: %w", err)
	}
	stderr := &tail{}
	config, introduction, err := s.host.meet()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make its certificate: %w", err), os.RemoveAll(dir))
	}
	client := s.client(ctx, dir, config, stderr, func(private string, cmd *exec.Cmd) *process {
		p := newProcess(s.path, slices.Concat(environment(private), introduction, cmd.Env))
		current.Store(p)
		return p
	})
	service, err := dispense(client)
	if err == nil {
		var info *attunev1.DescribeResponse
		if info, err = s.introduce(ctx, service); err == nil && ctx.Err() == nil {
			return &Tunlet{info: info, service: service, client: client, proc: current.Load(), dir: dir}, nil
		}
	}
	err = s.startError(ctx, client, current.Load(), stderr, err)
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// startError ends a start that failed, and says why in the words that help
// most: the time-out, what the tunlet said last, or the error.
func (s *starter) startError(ctx context.Context, client *plugin.Client, p *process, stderr *tail, err error) error {
	if p != nil {
		_ = p.Kill(context.Background())
	}
	client.Kill()
	switch {
	case errors.Is(err, errPermanent):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p != nil && p.state != nil && stderr.line() != "":
		return fmt.Errorf("%s: %s", p.state, stderr.line())
	case p != nil && p.state != nil && p.state.Exited():
		return fmt.Errorf("%s", p.state)
	}
	return err
}

// verify checks the binary: it must still be trusted, and the same as before.
func (s *starter) verify(ctx context.Context) error {
	if err := trusted(s.path); err != nil {
		return fmt.Errorf("%w: %w", err, errPermanent)
	}
	sum, err := s.digests.Digest(ctx, s.path)
	switch {
	case err != nil:
		return err
	case s.sum == "":
		s.sum = sum
	case s.sum != sum:
		return fmt.Errorf("%s has changed since it was started first: %w", s.path, errPermanent)
	}
	return nil
}

// client configures go-plugin for one start, with its socket in dir; run makes
// the process, given its private directory and what go-plugin wants in its
// environment. The checksum is verified by the starter, since go-plugin does so
// only for commands that it runs itself.
func (s *starter) client(ctx context.Context, dir string, config *tls.Config, stderr *tail, run func(string, *exec.Cmd) *process) *plugin.Client {
	out := &lineLogger{log: s.log}
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        config,
		SkipHostEnv:      true,
		StartTimeout:     s.timeout,
		Logger:           &logAdapter{log: s.log},
		Stderr:           stderr,
		SyncStdout:       out,
		SyncStderr:       out,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, private string) (runner.Runner, error) {
			return run(private, cmd), ctx.Err()
		},
	})
}

// environment returns all that a tunlet gets of the host's environment. Nothing
// that would load DMLib into it or make it part of the job is there.
func environment(dir string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + dir}
	for _, name := range []string{"HOME", "USER", "LANG", "TZ"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// dispense starts the process and returns the connection to its service.
func dispense(client *plugin.Client) (attunev1.TunletServiceClient, error) {
	conn, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := conn.Dispense(sdk.PluginName)
	if err != nil {
		return nil, err
	}
	service, ok := raw.(attunev1.TunletServiceClient)
	if !ok {
		return nil, fmt.Errorf("it dispenses a %T: %w", raw, errPermanent)
	}
	return service, nil
}

// apiVersions are the versions of the Dynamic Tunlet API that the host speaks.
func apiVersions() []string { return []string{"1"} }

// introduce asks the tunlet what it is, and hands it its configuration.
func (s *starter) introduce(ctx context.Context, service attunev1.TunletServiceClient) (*attunev1.DescribeResponse, error) {
	info, err := service.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: apiVersions()})
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	if !slices.Contains(apiVersions(), info.GetApiVersion()) {
		return nil, fmt.Errorf("it speaks version %q of the tunlet API, Attune speaks %q: %w", info.GetApiVersion(), apiVersions(), errPermanent)
	}
	if info.GetName() != s.name {
		return nil, fmt.Errorf("%s calls itself %q: %w", s.path, info.GetName(), errPermanent)
	}
	resp, err := service.Configure(ctx, &attunev1.ConfigureRequest{Options: s.options})
	switch {
	case status.Code(err) == codes.Unimplemented && len(s.options) == 0:
	case err != nil:
		return nil, fmt.Errorf("configure: %w", err)
	case resp.GetError() != "":
		return nil, fmt.Errorf("options: %s: %w", resp.GetError(), errPermanent)
	}
	return info, nil
}

// ended waits for the tunlet's end, cleans up, and says how it ended.
func (t *Tunlet) ended() string {
	<-t.proc.exited
	t.client.Kill()
	_ = os.RemoveAll(t.dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killed != "" {
		return t.killed
	}
	return t.proc.state.String()
}
