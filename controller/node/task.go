// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Task is a process that whoever starts it hands over, while it waits to
// execute its program: a batch system's plugin, or its user.
type Task struct {
	// PID of the process that will execute the program.
	PID int `json:"pid"`
	// UID of the user whom the program will run as.
	UID uint32 `json:"uid"`
	// Mode is observe, advise or tune.
	Mode string `json:"mode"`
	// Tunlets by name; none: all that the Analyzer has.
	Tunlets []string `json:"tunlets"`
	// Rank of the task in its step.
	Rank int32 `json:"rank"`
	// Job that it is of.
	Job TaskJob `json:"job"`
}

// TaskJob names a job of a batch system. What is handed over of one job is one
// session, whatever the step: mpirun starts its remote ranks in steps of their
// own.
type TaskJob struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Step string `json:"step"`
}

// Errors of TakeTask, which its caller tells in different ways.
var (
	errBadTask = errors.New("task")
	errDenied  = errors.New("not allowed")
)

// maxName bounds what a task names.
const maxName = 128

// validate says what is wrong with a task.
func (t Task) validate() error {
	switch {
	case t.PID <= 1:
		return fmt.Errorf("%w: %d is no process id", errBadTask, t.PID)
	case !slices.Contains(policy.Modes, t.Mode):
		return fmt.Errorf("%w: mode %q is none of %s", errBadTask, t.Mode, strings.Join(policy.Modes, ", "))
	case len(t.Tunlets) > maxName:
		return fmt.Errorf("%w: %d tunlets", errBadTask, len(t.Tunlets))
	}
	for _, name := range append([]string{t.Job.Kind, t.Job.ID}, t.Tunlets...) {
		if !isName(name) {
			return fmt.Errorf("%w: %q is no name: letters, digits and -_.[]: only", errBadTask, name)
		}
	}
	if err := registry.CheckRegistrationID(t.id()); err != nil { // or no Analyzer could ever be told
		return fmt.Errorf("%w: job: %w", errBadTask, err)
	}
	return nil
}

// isName says whether a text can be part of an id.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && strings.IndexFunc(text, func(r rune) bool {
		return !strings.ContainsRune("-_.[]", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// id is that of the registration of the task's job. Each node derives the same
// one.
func (t Task) id() string {
	return strings.NewReplacer("[", "-", "]", "-").Replace(fmt.Sprintf("%s-%s-%d", t.Job.Kind, t.Job.ID, t.UID))
}

// registration is what the site is told of the task's job.
func (t Task) registration() *attunev1.Registration {
	return &attunev1.Registration{
		Id: t.id(), Executable: handedOver, Mode: t.Mode, Tunlets: t.Tunlets, Owner: authn.OfUser(t.UID),
		Job: &attunev1.Job{Kind: t.Job.Kind, Id: t.Job.ID}, RegisteredUnixNano: time.Now().UnixNano(),
	}
}

// handedOver is the executable of registrations whose processes are handed over:
// no path has it, so that discovery finds none.
const handedOver = "(handed over)"

// TakeTask takes a task into the session of its job and returns the variables
// with which its program comes to the start gate. by is who hands it over: root,
// or the task's own user. The Analyzer is told beside.
func (n *Node) TakeTask(ctx context.Context, by uint32, t Task) (env []string, err error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	held, err := procid.Open(t.PID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadTask, err)
	}
	if err := mayHandOver(by, t); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	r := t.registration()
	o := order{registration: r, job: r.GetJob(), uid: t.UID, executable: handedOver, grant: n.granted(r, t.UID, handedOver)}
	if o.grant.mode == "" {
		return nil, errors.Join(fmt.Errorf("%w: %s", errDenied, o.grant.reason), held.Close())
	}
	s, err := n.take(o, held)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errDenied, err), held.Close())
	}
	n.register(r)
	select {
	case <-s.ready:
		return s.controller.Environment(), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the controller is not ready: %w", ctx.Err())
	}
}

// mayHandOver lets root hand over anything, and others their own.
func mayHandOver(by uint32, t Task) error {
	if by == 0 {
		return nil
	}
	owner, err := procid.Owner(t.PID)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadTask, err)
	}
	if by != t.UID || by != owner {
		return fmt.Errorf("%w: user %d may hand over processes of their own", errDenied, by)
	}
	return nil
}

const (
	// registerTimeout bounds one attempt to tell an Analyzer, registerPause
	// follows one in vain, and registerTries bounds them: half an hour.
	registerTimeout = 5 * time.Second
	registerPause   = 5 * time.Second
	registerTries   = 180
)

// register has an Analyzer know of a handed over job, once per registration.
func (n *Node) register(r *attunev1.Registration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.registering[r.GetId()] || n.view.Registrations[r.GetId()] != nil || n.closed {
		return
	}
	n.registering[r.GetId()] = true
	ctx := n.ctx
	n.work.Go(func() {
		n.tellAnalyzer(ctx, r)
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.registering, r.GetId())
	})
}

// tellAnalyzer asks one of the site's Analyzers after the other to take a
// registration.
func (n *Node) tellAnalyzer(ctx context.Context, r *attunev1.Registration) {
	said := ""
	for range registerTries {
		err := n.askAny(ctx, r)
		if err == nil || ctx.Err() != nil {
			return
		}
		if said != err.Error() {
			n.log.Warn("no analyzer takes what was handed over; trying again", "registration", r.GetId(), "error", err)
			said = err.Error()
		}
		select {
		case <-ctx.Done():
		case <-time.After(registerPause):
		}
	}
	if ctx.Err() == nil {
		n.log.Error("no analyzer has taken what was handed over; not trying any more", "registration", r.GetId(), "error", said)
		n.notes.trouble(fmt.Sprintf("registration %s was handed over, and no analyzer has taken it: %s", r.GetId(), said))
	}
}

func (n *Node) askAny(ctx context.Context, r *attunev1.Registration) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	analyzers, err := n.analyzers(ctx)
	if err != nil {
		return err
	}
	errs := []error{errors.New("there is no analyzer that can be reached")}
	for _, analyzer := range analyzers {
		for _, address := range reachable(analyzer, n.config.Host) {
			err := n.ask(ctx, address, r)
			if err == nil {
				return nil
			}
			errs = append(errs, fmt.Errorf("%s: %w", address, err))
		}
	}
	return errors.Join(errs...)
}

func (n *Node) ask(ctx context.Context, address string, r *attunev1.Registration) (err error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(n.config.Credentials), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = attunev1.NewSessionServiceClient(conn).StartSession(ctx, &attunev1.StartSessionRequest{Registration: r})
	return err
}
