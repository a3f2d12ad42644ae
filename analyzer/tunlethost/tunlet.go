// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"google.golang.org/grpc"
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
	life    life
}

// life is what a tunlet lives in: a process of its own, or one that it shares.
type life interface {
	// Kill ends it at once, because of what reason says. It does not wait.
	Kill(reason string)
	// done is closed when it has ended.
	done() <-chan struct{}
	// ended waits for the end, cleans up, and says how it ended.
	ended() error
	// measure reads what it takes; false if it has ended.
	measure() (usage, bool)
}

// Info returns the tunlet's account of itself; it is not to be modified.
func (t *Tunlet) Info() *attunev1.DescribeResponse { return t.info }

// Service returns the connection to it. Calls fail once it has ended.
func (t *Tunlet) Service() attunev1.TunletServiceClient { return t.service }

// Kill ends the tunlet at once, because of what reason says. The host then
// deals with it as with any other end.
func (t *Tunlet) Kill(reason string) { t.life.Kill(reason) }

// alive reports whether the tunlet has not ended.
func (t *Tunlet) alive() bool {
	select {
	case <-t.life.done():
		return false
	default:
		return true
	}
}

// starter is what is needed to start one tunlet, again and again.
type starter struct {
	Candidate

	options map[string]string
	launch  launcher // of a process of its own
	pool    *Pool
	user    string // as in Options
	log     *slog.Logger
	digests *objfile.Digests
	costs   *account
	sum     string // SHA-256 of the binary at its first start
	awake   bool   // it is of use, or does not sleep
	awaited bool   // the observer knows it as asleep
	unasked bool   // it is neither described nor configured
	alone   bool   // it has a process for itself, whatever it belongs to
}

// start starts the tunlet in a process of its own, or has the process of its package
// begin it, asks it to describe itself, and configures it. An end of ctx or of the
// timeout ends it.
func (s *starter) start(ctx context.Context) (*Tunlet, error) {
	if err := s.verify(ctx); err != nil {
		return nil, err
	}
	if program := s.sharedProgram(); program != "" {
		return s.join(ctx, program)
	}
	release, err := s.pool.admit(ctx, s.user, s.log)
	if err != nil {
		return nil, err
	}
	t := &Tunlet{}
	r, err := s.launch.run(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		t.service = attunev1.NewTunletServiceClient(conn)
		if !s.unasked {
			t.info, err = s.introduce(ctx, t.service)
		}
		return err
	})
	if err != nil {
		release()
		return nil, err
	}
	go func() { <-r.done(); release() }()
	t.life = r
	return t, nil
}

// join begins the tunlet in the process of its package.
func (s *starter) join(ctx context.Context, program string) (*Tunlet, error) {
	select {
	case s.pool.begins <- struct{}{}:
		defer func() { <-s.pool.begins }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := s.pool.enter(ctx, packageKey{program, s.sum})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.launch.timeout, fmt.Errorf("no answer within %v", s.launch.timeout))
	defer cancel()
	i, err := p.begin(ctx, s.Name, s.costs)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	t := &Tunlet{service: attunev1.NewTunletServiceClient(i), life: i}
	if s.unasked {
		return t, nil
	}
	if t.info, err = s.introduce(ctx, t.service); err != nil {
		i.Kill("it could not be started")
		return nil, cmp.Or(context.Cause(ctx), p.blame(ctx, err))
	}
	return t, nil
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
		return fmt.Errorf("%s has changed since it was started first: %w", cmp.Or(s.CopyOf, s.Path), errPermanent)
	}
	return nil
}

// command is what is executed, with its arguments.
func (c Candidate) command() (program string, arguments []string) {
	switch {
	case c.Interpreter != "" && c.CopyOf != "":
		return c.Interpreter, []string{c.Path, c.CopyOf}
	case c.Interpreter != "":
		return c.Interpreter, []string{c.Path}
	}
	return c.Path, nil
}

// digest is the SHA-256 of all that the tunlet is made of.
func (s *starter) digest(ctx context.Context) (string, error) {
	if s.Folder != "" {
		return folder(s.Folder).digest(ctx, s.digests)
	}
	sum, err := s.digests.Digest(ctx, s.Path)
	if s.Interpreter == "" || err != nil {
		return sum, err
	}
	program, err := s.digests.Digest(ctx, s.Interpreter)
	both := sha256.Sum256([]byte(program + sum))
	return hex.EncodeToString(both[:]), err
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
		return nil, fmt.Errorf("%s calls itself %q: %w", cmp.Or(s.CopyOf, s.Path), info.GetName(), errPermanent)
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
