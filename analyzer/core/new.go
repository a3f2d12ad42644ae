// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"

	"github.com/attune-hpc/attune/analyzer/core/trial"
)

// New returns a core with the given rules.
func New(cfg Config) *Core {
	t, known, processes := &transcript{}, knowledge{}, newProcesses(trial.BaselineWindow(cfg.Apart))
	siblings, own := newSiblings(processes), newOwnObjective(cfg.Objective)
	processes.shared = own != nil
	c := &Core{
		transcript: t,
		own:        own,
		tunlets:    tunlets{},
		processes:  processes,
		owners:     newOwners(),
		restraints: newRestraints(processes),
		known:      known,
		line:       &line{known: known, shared: own != nil},
		archive:    newArchive(cfg.IDPrefix, &t.views),
		requests:   &requests{transcript: t, unanswered: map[string]*proposal{}},
		refusals:   &refusals{transcript: t, said: map[string]*refusal{}},
	}
	c.ends = &endings{
		transcript: t, line: c.line, archive: c.archive, owners: c.owners, restraints: c.restraints,
		siblings: siblings, afterEnd: c.aftermath,
	}
	c.undoer = &undoer{transcript: t, requests: c.requests, ends: c.ends, keep: cfg.Keep}
	c.judge = &judge{
		transcript: t, apart: cfg.Apart, own: own, known: known, processes: processes, siblings: siblings, line: c.line,
		requests: c.requests, undoer: c.undoer,
	}
	c.undoer.changeSides = c.judge.changeSides
	c.applier = &applier{
		transcript: t, queueWait: cmp.Or(cfg.queueWait, queueWait), line: c.line, processes: processes, siblings: siblings,
		requests: c.requests, ends: c.ends, undoer: c.undoer, judge: c.judge,
	}
	c.outcomes = &outcomes{transcript: t, archive: c.archive, processes: processes, restraints: c.restraints, undoer: c.undoer}
	c.canaries = &canaries{transcript: t, shared: own != nil, owners: c.owners, line: c.line, ends: c.ends, undoer: c.undoer}
	c.admission = &admission{
		transcript: t, mode: cfg.Mode, tunlets: c.tunlets, processes: processes, owners: c.owners,
		restraints: c.restraints, line: c.line, archive: c.archive, refusals: c.refusals,
		rivalry: &rivalry{owners: c.owners, known: known, undoer: c.undoer, canaries: c.canaries}, canaries: c.canaries,
	}
	c.withdrawals = &withdrawals{
		transcript: t, archive: c.archive, owners: c.owners, line: c.line, undoer: c.undoer, canaries: c.canaries,
	}
	return c
}
