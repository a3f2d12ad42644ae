// SPDX-License-Identifier: Apache-2.0

package service

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Status is how a service is.
type Status struct {
	// Record is its own.
	Record *attunev1.AnalyzerRecord
	// Registrations counts those of the site, Owned those that this one has.
	Registrations, Owned int
	// Sessions counts its sessions.
	Sessions int
	// TunletProcesses counts the processes of their tunlets.
	TunletProcesses int
}

// Status returns how the service is.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Record: s.cfg.Record, Registrations: len(s.view.Registrations), Owned: len(s.owned),
		Sessions: len(s.hosted), TunletProcesses: s.tunlets.Processes(),
	}
}
