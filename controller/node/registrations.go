// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/logging"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// registerTimeout bounds each question of an attempt to tell an Analyzer: one that
	// cannot be reached is not to keep the next from being asked. registerPause follows
	// an attempt in vain, and registerTries bounds them: half an hour, and longer where
	// there are several that do not answer.
	registerTimeout = 5 * time.Second
	registerPause   = 5 * time.Second
	registerTries   = 180
	// tunletsWithin bounds how long a task waits to hear which tunlets there are: that
	// and its controller have to fit into a quarter of a second, see
	// docs/reference/slurm.md.
	tunletsWithin = 150 * time.Millisecond
)

// registrations knows what is registered, and has Analyzers know of what is handed
// over: of each registration one goroutine tells them, and of none that is known. Its
// methods may be called from any goroutine.
type registrations struct {
	host        string
	credentials credentials.TransportCredentials
	analyzers   func(context.Context) ([]*attunev1.AnalyzerRecord, error) // those of the site
	// tunlets are the names of those that the site has; see [registry.Node.Tunlets].
	tunlets func(ctx context.Context, wanted []string) ([]string, error)
	workers *workers
	notes   *notes
	log     *slog.Logger

	mu      sync.Mutex // guards what follows; only that of workers is taken beneath it
	known   map[string]*attunev1.Registration
	telling map[string]bool // whom an Analyzer is being told of
}

// set takes what is registered now.
func (r *registrations) set(known map[string]*attunev1.Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = known
}

// registered says whether a registration is there.
func (r *registrations) registered(id string) bool {
	return r.of(id) != nil
}

// of returns what is known of a registration; nil: nothing.
func (r *registrations) of(id string) *attunev1.Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// latest returns a registration as it is registered by now, or as it was where nothing is known
// of it: it may have changed while a session goes on.
func (r *registrations) latest(was *attunev1.Registration) *attunev1.Registration {
	return cmp.Or(r.of(was.GetId()), was)
}

// checkTunlets returns an error that names the tunlets of a handed over job which the
// site does not have. A registration that is known, or being told of, was asked about;
// where no Analyzer answers in time, the one that takes it says what is wrong.
func (r *registrations) checkTunlets(ctx context.Context, registration *attunev1.Registration) error {
	wanted := registration.GetTunlets()
	r.mu.Lock()
	asked := r.telling[registration.GetId()] || r.known[registration.GetId()] != nil
	r.mu.Unlock()
	if len(wanted) == 0 || asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tunletsWithin)
	defer cancel()
	there, err := r.tunlets(ctx, wanted)
	if err != nil || len(there) == 0 {
		r.log.Debug("it is not known which tunlets there are", "registration", registration.GetId(), "error", err)
		return nil
	}
	var missing []string
	for _, name := range wanted {
		if !slices.Contains(there, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the site has no tunlet %s; there are: %s", listed(missing), listed(there))
}

// listed joins names in a text that has an end.
func listed(names []string) string {
	const most = 32
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// register has an Analyzer know of a handed over job, once per registration, for as long as
// it is needed.
func (r *registrations) register(registration *attunev1.Registration, needed func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := registration.GetId()
	if r.telling[id] || r.known[id] != nil {
		return
	}
	r.telling[id] = r.workers.start(func(ctx context.Context) {
		r.tellAnalyzer(ctx, registration, needed)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.telling, id)
	})
}

// tellAnalyzer asks one of the site's Analyzers after the other to take a
// registration, unless it is needed no more.
func (r *registrations) tellAnalyzer(ctx context.Context, registration *attunev1.Registration, needed func() bool) {
	said, log := "", r.log.With("registration", registration.GetId(), logging.UserKey, registration.GetOwner().GetUid())
	for range registerTries {
		if !needed() {
			return
		}
		err := r.askAny(ctx, registration)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, errWrong) {
			said = err.Error()
			break
		}
		if said != err.Error() {
			log.Warn("no analyzer takes what was handed over; trying again", "error", err)
			said = err.Error()
		}
		beat.Pause(ctx, registerPause)
	}
	if ctx.Err() == nil {
		log.Error("no analyzer has taken what was handed over; not trying any more", "error", said)
		r.notes.troubleOf(registration.GetOwner().GetUid(), fmt.Sprintf("registration %s was handed over, and no analyzer has taken it: %s", registration.GetId(), said))
	}
}

// errWrong says that all Analyzers find a registration wrong: it stays so.
var errWrong = errors.New("what it asks for is wrong")

func (r *registrations) askAny(ctx context.Context, registration *attunev1.Registration) error {
	brief, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	analyzers, err := r.analyzers(brief)
	if err != nil {
		return err
	}
	errs, wrong := []error{errors.New("there is no analyzer that can be reached")}, 0
	for _, analyzer := range analyzers {
		for _, address := range reachable(analyzer, r.host) {
			err := r.ask(ctx, address, registration)
			if err == nil {
				return nil
			}
			if status.Code(err) == codes.InvalidArgument {
				wrong++
			}
			errs = append(errs, fmt.Errorf("%s: %w", address, err))
		}
	}
	if wrong > 0 && wrong == len(errs)-1 {
		errs[0] = errWrong
	}
	return errors.Join(errs...)
}

func (r *registrations) ask(ctx context.Context, address string, registration *attunev1.Registration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(r.credentials), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = attunev1.NewSessionServiceClient(conn).StartSession(ctx, &attunev1.StartSessionRequest{Registration: registration})
	return err
}
