// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// notFound is what is said of what is not there, or not for who asks: that it is
// there is nobody else's business.
func notFound(id string) error {
	return status.Errorf(codes.NotFound, "there is no session or registration %q", id)
}

// finder finds sessions, of all Analyzers. Its methods are safe for use by several
// goroutines.
type finder struct {
	table    *table
	registry *registry.Client
	recorder *recorder
	reports  *reports
}

// find returns a session by its id, or by its registration's or its job's if that has
// one session only, and its place at this Analyzer; nil if it has ended. Somebody who
// may not see it learns no more than of one that is not there.
func (f *finder) find(ctx context.Context, who *attunev1.Principal, id string) (*attunev1.SessionRecord, *hosted, error) {
	records, here, err := f.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	registrations := f.table.registrations()
	matching := func(records []*attunev1.SessionRecord) (found []*attunev1.SessionRecord) {
		for _, r := range records {
			if (r.GetId() == id || r.GetRegistration() == id || OfJob(r, id)) && concernsSession(who, r, registrations[r.GetRegistration()]) {
				found = append(found, r)
			}
		}
		return found
	}
	found := matching(records)
	if len(found) == 0 {
		found = matching(f.reports.records()) // the registry forgets earlier
	}
	if r := registrations[id]; len(found) == 0 && r != nil && concerns(who, r) {
		return nil, nil, status.Errorf(codes.NotFound, "registration %s has no session yet, or none that is known any more: %s has not run, or nodes leave it alone, see attune node list --verbose",
			id, r.GetExecutable())
	}
	r, err := choose(id, found)
	if err != nil || r.GetState() == attunev1.SessionState_SESSION_STATE_ENDED {
		return r, nil, err
	}
	if h := here[r.GetId()]; h != nil {
		return r, h, nil
	}
	if err := f.elsewhere(r.GetRegistration()); err != nil {
		return nil, nil, err
	}
	return nil, nil, status.Errorf(codes.Unavailable, "no controller of session %s has come since its Analyzer ended", r.GetId())
}

// OfJob says whether a session is of the job that a batch system names so: 1347, 1347.0
// for a step of it, slurm/1347 or slurm-1347. A session of a job that was handed
// over is of all of its steps.
func OfJob(r *attunev1.SessionRecord, name string) bool {
	job := r.GetJob()
	if rest, found := strings.CutPrefix(name, job.GetKind()); found && rest != "" && strings.ContainsRune("/-", rune(rest[0])) {
		name = rest[1:]
	}
	rest, found := strings.CutPrefix(name, job.GetId())
	if !found || job.GetId() == "" {
		return false
	}
	step, named := strings.CutPrefix(rest, ".")
	return rest == "" || named && step != "" && (job.GetStep() == "" || job.GetStep() == step)
}

// choose returns the session that is meant: by its id, else the only one, else
// the only one that runs.
func choose(id string, found []*attunev1.SessionRecord) (*attunev1.SessionRecord, error) {
	for _, r := range found {
		if r.GetId() == id {
			return r, nil
		}
	}
	if len(found) == 0 {
		return nil, notFound(id)
	}
	if len(found) > 1 {
		running := slices.DeleteFunc(slices.Clone(found), func(r *attunev1.SessionRecord) bool {
			return r.GetState() == attunev1.SessionState_SESSION_STATE_ENDED
		})
		if len(running) != 1 {
			var ids []string
			for _, r := range found {
				ids = append(ids, r.GetId())
			}
			slices.Sort(ids)
			return nil, status.Errorf(codes.FailedPrecondition, "%s has %d sessions, name one: %s", id, len(found), strings.Join(ids, ", "))
		}
		return running[0], nil
	}
	return found[0], nil
}

// elsewhere returns an error that says which Analyzer has a registration; nil if
// that is this one, or nobody.
func (f *finder) elsewhere(registration string) error {
	f.table.mu.Lock()
	owner := f.table.view.Owners[registration].GetAnalyzer()
	f.table.mu.Unlock()
	if owner == nil || owner.GetId() == f.table.self {
		return nil
	}
	said := status.Newf(codes.FailedPrecondition, "the Analyzer on %s has it: ask there, at %s", owner.GetHost(), strings.Join(owner.GetAddresses(), " or "))
	if more, err := said.WithDetails(owner); err == nil { // clients go there by themselves
		said = more
	}
	return said.Err()
}

// records returns the records of all sessions: of this Analyzer's as they stand,
// of others as the registry has them. here are the places of this Analyzer's that
// have not ended, by the id of the session.
//
// What is in this process is looked at first, and what the registry knows after
// it: a session that ends meanwhile is in the one or in the other. One that begins
// meanwhile is found by the second look.
func (f *finder) records(ctx context.Context) (list []*attunev1.SessionRecord, here map[string]*hosted, err error) {
	here = f.table.here()
	known := f.recorder.unsent()
	list, err = f.registry.Sessions(ctx)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	analyzers, err := f.registry.Analyzers(ctx)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	maps.Copy(here, f.table.here())
	for id, h := range here {
		known[id] = h.snapshot()
	}
	for i, r := range list {
		switch {
		case known[r.GetId()] != nil:
			list[i] = known[r.GetId()]
			delete(known, r.GetId())
		case r.GetState() == attunev1.SessionState_SESSION_STATE_RUNNING && !lives(analyzers, r.GetAnalyzer(), f.table.self):
			r.State = attunev1.SessionState_SESSION_STATE_ORPHANED
		}
	}
	return slices.AppendSeq(list, maps.Values(known)), here, nil
}

// withKept adds the records of sessions that changed something, whose reports are kept
// here and that the registry has forgotten.
func (f *finder) withKept(records []*attunev1.SessionRecord) []*attunev1.SessionRecord {
	known := make(map[string]bool, len(records))
	for _, r := range records {
		known[r.GetId()] = true
	}
	for _, r := range f.reports.records() {
		if !known[r.GetId()] {
			records = append(records, r)
		}
	}
	return records
}

// lives says whether an Analyzer is there; of this one, sessions that it does
// not have any more are not.
func lives(analyzers []*attunev1.AnalyzerRecord, id, self string) bool {
	return id != self && slices.ContainsFunc(analyzers, func(a *attunev1.AnalyzerRecord) bool { return a.GetId() == id })
}
