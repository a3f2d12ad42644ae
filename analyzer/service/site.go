// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sitePause lies between attempts to register what the configuration says.
const sitePause = time.Second

// validateSite says what is wrong with the site's own registrations.
func validateSite(list []*attunev1.Registration) error {
	seen := make(map[string]bool)
	for _, r := range list {
		switch id := r.GetId(); {
		case !strings.HasPrefix(id, SiteID):
			return fmt.Errorf("registration %q: the id of a site's own has to begin with %s", id, SiteID)
		case seen[id]:
			return fmt.Errorf("registration %q is there twice", id)
		}
		seen[r.GetId()] = true
		if err := ValidateRegistration(r); err != nil {
			return fmt.Errorf("registration %s: %w", r.GetId(), err)
		}
	}
	return nil
}

// ValidateRegistration says what makes no sense in a registration, which need not
// have an id yet.
func ValidateRegistration(r *attunev1.Registration) error {
	if r.GetId() != "" {
		if err := registry.CheckRegistrationID(r.GetId()); err != nil {
			return err
		}
	}
	if err := registry.CheckRegistrationSize(r); err != nil {
		return err
	}
	if r.GetExecutable() == "" && r.GetJob() == nil {
		return errors.New("no application is named")
	}
	if _, err := path.Match(r.GetExecutable(), ""); err != nil {
		return fmt.Errorf("executable %q: %w", r.GetExecutable(), err)
	}
	if sum, err := hex.DecodeString(r.GetSha256()); err != nil || len(sum) != 0 && len(sum) != 32 {
		return fmt.Errorf("%q is no SHA-256: write 64 hexadecimal digits, as sha256sum prints them", r.GetSha256())
	}
	if _, err := bounded.Regexp(r.GetArguments()); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	if _, err := objective.OfService(r.GetObjective()); err != nil {
		return fmt.Errorf("objective: %w", err)
	}
	_, err := core.ParseMode(r.GetMode())
	return err
}

// nodesMeasure is the text of an objective that nodes measure, empty of another one.
func nodesMeasure(spec *objective.Spec, text string) string {
	if spec == nil || spec.Kind == objective.Point {
		return ""
	}
	return text
}

// site keeps the site's own registrations in the registry. set is safe for use
// by several goroutines.
type site struct {
	registry *registry.Client
	host     string // of this Analyzer
	log      *slog.Logger
	changed  queue.Bell

	mu   sync.Mutex // guards list
	list []*attunev1.Registration
}

// set replaces the site's own registrations, which must be valid.
func (s *site) set(list []*attunev1.Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	s.changed.Ring()
}

// run puts the site's own registrations into the registry and takes out
// what was among them earlier, at first and when they change, until ctx ends.
func (s *site) run(ctx context.Context) error {
	said := false
	for {
		err := s.sync(ctx)
		switch {
		case err == nil:
			said = false
			select {
			case <-ctx.Done():
				return nil
			case <-s.changed:
			}
		case !said && ctx.Err() == nil:
			said = true
			s.log.Warn("the site's registrations are not in the registry yet", "error", err)
		}
		if err != nil && !beat.Pause(ctx, sitePause) {
			return nil
		}
	}
}

// sync brings the registry in line with the configuration.
func (s *site) sync(ctx context.Context) error {
	s.mu.Lock()
	configured := s.list
	s.mu.Unlock()
	there, err := s.registry.Registrations(ctx)
	if err != nil {
		return err
	}
	old := make(map[string]*attunev1.Registration)
	for _, r := range there {
		own := r.GetOwner().GetName() == s.host // not of another Analyzer's configuration
		if ofConfiguration(r) && (own || has(configured, r.GetId())) {
			old[r.GetId()] = r
		}
	}
	for _, r := range configured {
		r = proto.CloneOf(r)
		r.Owner = &attunev1.Principal{Name: s.host, Uid: pki.NoUID, Role: attunev1.Role_ROLE_ANALYZER}
		r.RegisteredUnixNano = old[r.GetId()].GetRegisteredUnixNano()
		if !proto.Equal(r, old[r.GetId()]) {
			r.RegisteredUnixNano = time.Now().UnixNano()
			if err := s.registry.PutRegistration(ctx, r); err != nil {
				return err
			}
		}
		delete(old, r.GetId())
	}
	for id := range old {
		if err := s.registry.DeleteRegistration(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// has says whether a registration is among others.
func has(list []*attunev1.Registration, id string) bool {
	return slices.ContainsFunc(list, func(r *attunev1.Registration) bool { return r.GetId() == id })
}
