// SPDX-License-Identifier: Apache-2.0

package sdk

import "github.com/attune-hpc/attune/proto/attune/series"

// Signal is one thing sampled from outside a process. Those that are not
// gauges count up over the life of the process; a Window turns them into
// rates. docs/reference/signals.md lists them with their sources.
//
// String returns its name, e.g. "run_time", and Gauge whether it is a value of the
// moment, and no counter.
type Signal = series.ID

// SignalNamed returns the signal of a name, and whether there is one.
func SignalNamed(name string) (Signal, bool) { return series.Named(name) }

// Signals lists all signals.
func Signals() (all []Signal) {
	for _, s := range series.Signals().Series {
		all = append(all, s.ID)
	}
	return all
}

// Detail is a kind of details: a table of what is read from outside a process only
// when a tunlet asks for it by [Host.WantDetails]. String returns its name: threads,
// sockets and so on. docs/reference/signals.md has the fields of each.
type Detail = series.TableID

// Details are what a round read of a process beside its signals. A kind is nil
// in rounds in which it was not read: a bounded number of threads and
// descriptors is read in each one, of all processes in turn.
type Details = series.Details

// ThreadKey names a thread of a process for good.
type ThreadKey struct {
	TID        int
	StartTicks uint64
}

// KeyOf returns the thread's name for good.
func KeyOf(t *ThreadDetail) ThreadKey { return ThreadKey{t.TID, t.StartTicks} }
