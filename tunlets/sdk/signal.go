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
