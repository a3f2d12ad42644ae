// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// errPermanent marks a failure that another start would only repeat.
var errPermanent = errors.New("not started again")

// maxAnswer bounds what a tunlet answers to one call, bytes: go-plugin has no
// bound of its own, and what is small on the wire can be a hundred times as much
// in memory.
const maxAnswer = 4 << 20

// Tunlet is one running tunlet. Its methods are safe for use by several
// goroutines.
type Tunlet struct {
	info    *attunev1.DescribeResponse
	service attunev1.TunletServiceClient
	client  *plugin.Client
	proc    *process
	dir     string // of its socket
	said    *limitedLog

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
	Candidate

	options map[string]string
	limits  Limits
	tempDir string
	timeout time.Duration
	log     *slog.Logger
	said    *limitedLog // what the tunlet says
	digests *objfile.Digests
	host    *identity
	costs   *account
	sum     string // SHA-256 of the binary at its first start
	awake   bool   // it is of use, or does not sleep
	awaited bool   // the observer knows it as asleep
	unasked bool   // it is neither described nor configured
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
	program, arguments := s.command()
	client := s.client(ctx, dir, config, stderr, func(private string, cmd *exec.Cmd) *process {
		p := newProcess(program, arguments, slices.Concat(environment(private), introduction, cmd.Env), s.limits, s.costs)
		current.Store(p)
		return p
	})
	service, err := dispense(client)
	if err == nil {
		var info *attunev1.DescribeResponse
		if !s.unasked {
			info, err = s.introduce(ctx, service)
		}
		if err == nil && ctx.Err() == nil {
			return &Tunlet{info: info, service: service, client: client, proc: current.Load(), dir: dir, said: s.said}, nil
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
	s.said.flush()
	switch {
	case errors.Is(err, errPermanent):
		return err
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

// verify checks the binary: it must still be trusted, and the same as before.
func (s *starter) verify(ctx context.Context) error {
	if err := s.trusted(); err != nil {
		return fmt.Errorf("%w: %w", err, errPermanent)
	}
	sum, err := s.digest(ctx)
	switch {
	case err != nil:
		return err
	case s.sum == "":
		s.sum = sum
	case s.sum != sum:
		return fmt.Errorf("%s has changed since it was started first: %w", s.Path, errPermanent)
	}
	return nil
}

// command is what is executed, with its arguments.
func (s *starter) command() (program string, arguments []string) {
	if s.Interpreter != "" {
		return s.Interpreter, []string{s.Path}
	}
	return s.Path, nil
}

// digest is the SHA-256 of all that the tunlet is made of.
func (s *starter) digest(ctx context.Context) (string, error) {
	sum, err := s.digests.Digest(ctx, s.Path)
	if s.Interpreter == "" || err != nil {
		return sum, err
	}
	program, err := s.digests.Digest(ctx, s.Interpreter)
	both := sha256.Sum256([]byte(program + sum))
	return hex.EncodeToString(both[:]), err
}

// client configures go-plugin for one start, with its socket in dir; run makes
// the process, given its private directory and what go-plugin wants in its
// environment. The checksum is verified by the starter, since go-plugin does so
// only for commands that it runs itself.
func (s *starter) client(ctx context.Context, dir string, config *tls.Config, stderr *tail, run func(string, *exec.Cmd) *process) *plugin.Client {
	out := &lineLogger{log: s.said}
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  sdk.Handshake,
		Plugins:          plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        config,
		SkipHostEnv:      true,
		StartTimeout:     s.timeout,
		Logger:           &logAdapter{log: s.said},
		Stderr:           stderr,
		SyncStdout:       out,
		SyncStderr:       out,
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
func apiVersions() []string { return []string{sdk.APIVersion} }

// introduce asks the tunlet what it is, and hands it its configuration.
func (s *starter) introduce(ctx context.Context, service attunev1.TunletServiceClient) (*attunev1.DescribeResponse, error) {
	info, err := service.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: apiVersions()})
	if status.Code(err) == codes.FailedPrecondition {
		return nil, fmt.Errorf("%s: %w", status.Convert(err).Message(), errPermanent)
	}
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	if !slices.Contains(apiVersions(), info.GetApiVersion()) {
		return nil, fmt.Errorf("it speaks version %q of the tunlet API, Attune speaks %q: %w", info.GetApiVersion(), apiVersions(), errPermanent)
	}
	if info.GetName() != s.Name {
		return nil, fmt.Errorf("%s calls itself %q: %w", s.Path, info.GetName(), errPermanent)
	}
	options, err := settle(info, s.options)
	if err != nil {
		return nil, err
	}
	resp, err := service.Configure(ctx, &attunev1.ConfigureRequest{Options: options})
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
	t.said.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.killed != "" {
		return t.killed
	}
	return t.proc.state.String()
}

// alive reports whether the tunlet's process has not been reaped.
func (t *Tunlet) alive() bool {
	select {
	case <-t.proc.exited:
		return false
	default:
		return true
	}
}
