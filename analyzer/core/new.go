// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"

	"github.com/attune-hpc/attune/analyzer/core/trial"
)

// New returns a core with the given rules.
func New(cfg Config) *Core {
	log, known, runs := &transcript{}, knowledge{}, newProcesses(trial.BaselineWindow(cfg.Apart))
	c := &Core{
		transcript: log,
		tunlets:    tunlets{},
		processes:  runs,
		owners:     newOwners(),
		restraints: newRestraints(),
		known:      known,
		line:       &line{known: known},
		archive:    newArchive(cfg.IDPrefix, &log.views),
		requests:   &requests{transcript: log, unanswered: map[string]*proposal{}},
		refusals:   &refusals{transcript: log, said: map[string]*refusal{}},
	}
	kin := &siblings{kin: map[kinKey]*kin{}, processes: runs}
	c.ends = &endings{
		transcript: log, line: c.line, archive: c.archive, owners: c.owners, restraints: c.restraints,
		siblings: kin, afterEnd: c.aftermath,
	}
	c.undoer = &undoer{transcript: log, requests: c.requests, ends: c.ends, keep: cfg.Keep}
	c.judge = &judge{
		transcript: log, apart: cfg.Apart, known: known, processes: runs, siblings: kin, line: c.line,
		requests: c.requests, undoer: c.undoer,
	}
	c.applier = &applier{
		transcript: log, queueWait: cmp.Or(cfg.queueWait, queueWait), line: c.line, processes: runs, siblings: kin,
		requests: c.requests, ends: c.ends, undoer: c.undoer, judge: c.judge,
	}
	c.outcomes = &outcomes{transcript: log, archive: c.archive, processes: runs, restraints: c.restraints, undoer: c.undoer}
	c.canaries = &canaries{transcript: log, owners: c.owners, line: c.line, ends: c.ends, undoer: c.undoer}
	c.admission = &admission{
		transcript: log, mode: cfg.Mode, tunlets: c.tunlets, processes: runs, owners: c.owners,
		restraints: c.restraints, line: c.line, archive: c.archive, refusals: c.refusals,
		rivalry: &rivalry{owners: c.owners, known: known, undoer: c.undoer}, canaries: c.canaries,
	}
	c.withdrawals = &withdrawals{
		transcript: log, archive: c.archive, owners: c.owners, line: c.line, undoer: c.undoer, canaries: c.canaries,
	}
	return c
}
