// SPDX-License-Identifier: Apache-2.0

package accountant

import "github.com/attune-hpc/attune/internal/account"

// show gives a reading to whoever wants to see it: the time series, if a line is
// due, whoever watches, and snapshots.
func (s *sampler) show(r *reading, due bool) {
	if !s.options.needsBytes() {
		return
	}
	row := s.row(r)
	if due {
		s.lastRow = *r
		if s.rows != nil {
			s.rows.put(row)
		}
		if s.options.Watch != nil {
			s.options.Watch(row)
		}
	}
	if s.watcher != nil {
		s.takeSnapshots(row)
	}
}

// row is a line of the time series.
func (s *sampler) row(r *reading) account.Row {
	row := account.Row{
		Seconds: r.seconds, CPUSeconds: r.taken.cpu.Seconds(), Processes: r.processes,
		Resident: r.resident, Anonymous: r.anonymous, Virtual: r.virtual,
		Read: r.taken.read, Written: r.taken.written, StorageRead: r.taken.storageRead, StorageWritten: r.taken.storageWritten,
	}
	if passed := r.seconds - s.lastRow.seconds; s.lastRow.seconds > 0 && passed > 0 {
		row.Cores = new((r.taken.cpu - s.lastRow.taken.cpu).Seconds() / passed)
	}
	if r.hasCgroup {
		row.Cgroup = new(r.cgroup)
	}
	return row
}

// takeSnapshots takes one for each event that came since the last look.
func (s *sampler) takeSnapshots(row account.Row) {
	for len(s.snapshots) < maxSnapshots {
		select {
		case label := <-s.watcher.labels:
			s.snapshots = append(s.snapshots, account.Snapshot{Label: label, At: row})
		default:
			return
		}
	}
}

// lastSnapshots takes those of events at the end, with what was there at the last look.
func (s *sampler) lastSnapshots() {
	if s.watcher == nil {
		return
	}
	<-s.watcher.stopped
	s.takeSnapshots(s.row(&s.last))
}
