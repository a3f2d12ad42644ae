// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"context"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// shown gives readings to whoever wants to see them: the time series, whoever watches, and
// snapshots.
type shown struct {
	options   *Options
	rows      *rows     // nil: no time series
	due       time.Time // when the next line is, not before
	last      reading   // of the last line
	newest    reading
	watcher   *watcher // nil: there are no events
	snapshots []account.Snapshot
}

// newShown looks for events from what there was before the command, until ctx ends.
func newShown(ctx context.Context, o *Options, before []watched) shown {
	s := shown{options: o}
	if o.Series != nil {
		s.rows = newRows(o.Series, o.SeriesCSV)
	}
	if len(before) > 0 {
		s.watcher = watch(ctx, before, o.Every)
	}
	return s
}

// show shows a reading, unless it is partial: the next one is shown instead.
func (s *shown) show(r *reading, at time.Time) {
	if !s.options.needsBytes() || r.partial {
		return
	}
	row := s.row(r)
	if s.newest = *r; !at.Before(s.due) {
		s.last = *r
		if s.rows != nil {
			s.rows.put(row)
		}
		if s.options.Watch != nil {
			s.options.Watch(row)
		}
	}
	s.takeSnapshots(row)
}

// pause says how long after a look that was due the next line is: looks for the limits come at
// other times.
func (s *shown) pause(begun time.Time, pause time.Duration) {
	if !begun.Before(s.due) {
		s.due = begun.Add(pause - pause/10)
	}
}

// row is a line of the time series.
func (s *shown) row(r *reading) account.Row {
	row := account.Row{
		Seconds: r.seconds, CPUSeconds: r.taken.cpu.Seconds(), Processes: r.processes,
		Resident: r.resident, Anonymous: r.anonymous, Virtual: r.virtual,
		Read: r.taken.read, Written: r.taken.written, StorageRead: r.taken.storageRead, StorageWritten: r.taken.storageWritten,
	}
	if passed := r.seconds - s.last.seconds; s.last.seconds > 0 && passed > 0 {
		row.Cores = new((r.taken.cpu - s.last.taken.cpu).Seconds() / passed)
	}
	if r.hasDisk {
		row.Disk, row.DiskFiles = new(r.disk.Bytes), new(r.disk.Files)
	}
	if r.hasCgroup {
		row.Cgroup = new(r.cgroup)
	}
	return row
}

// takeSnapshots takes one for each event that came since the last look.
func (s *shown) takeSnapshots(row account.Row) {
	for s.watcher != nil && len(s.snapshots) < maxSnapshots {
		select {
		case label := <-s.watcher.labels:
			s.snapshots = append(s.snapshots, account.Snapshot{Label: label, At: row})
		default:
			return
		}
	}
}

// fill fills in snapshots, those of events since the last look too, and what became of the time
// series.
func (s *shown) fill(a *account.Account) {
	if s.watcher != nil {
		if err := s.watcher.await(); err != nil {
			a.Missing["snapshots"] = err.Error()
		}
		s.takeSnapshots(s.row(&s.newest))
	}
	a.Snapshots = s.snapshots
	if s.rows == nil {
		return
	}
	written, err := s.rows.end()
	a.Series = &account.Series{Path: s.options.SeriesPath, EverySeconds: s.options.Every.Seconds(), Rows: written}
	if err != nil {
		a.Missing["series"] = err.Error()
	}
}
