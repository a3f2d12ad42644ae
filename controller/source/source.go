// SPDX-License-Identifier: Apache-2.0

// Package source says how processes are read from outside: by sources, each of which
// knows some tables of the catalogue (proto/attune/series), within a room that all of
// them share. Whoever measures something more of a process writes one, and adds it to
// the list that the controller makes.
//
// What a source reads belongs to one goroutine: that of the sampling loop.
package source

import (
	"errors"
	"slices"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Process is one whom sources read.
type Process struct {
	// Handle is the caller's name for the process image.
	Handle uint64
	// Identity is whom the handle means.
	Identity procid.Identity
	// Program is its memory and what it has mapped; nil: none of it is read.
	Program Program
}

// Program is what may be read of the program that a process executes. What belongs to it
// may never answer (docs/design/0053): the sampling loop does not wait for it.
type Program interface {
	proc.Holder
	// Objects are the paths of what it has mapped, as far as that is known. The caller does
	// not change them.
	Objects() []string
	// Images lists what it has mapped at present.
	Images() ([]objfile.Image, error)
}

// Room bounds what a round reads of all processes together beside their signals, in
// items of some 10 µs.
type Room struct{ left int }

// NewRoom returns room for so many items.
func NewRoom(items int) *Room { return &Room{items} }

// Left is how many items there is room for; at least 0.
func (r *Room) Left() int { return max(0, r.left) }

// Take takes room for items that were read. It may take more than there is: what has
// been begun is read.
func (r *Room) Take(items int) { r.left -= items }

// Measured is what sources have read of a process in one round.
type Measured struct {
	// Signals of the process; nil: none yet.
	Signals *attunev1.Table
	// Details are the tables that were wanted, as far as they were read.
	Details series.Details
}

// Source reads some tables of processes.
type Source interface {
	// Tables are those that it reads. One that reads the signals is asked in every
	// round, others only for what is wanted.
	Tables() []series.TableID
	// Read reads those of its tables that are wanted, as far as there is room and it
	// is time to, and adds them to what was measured. Why a table cannot be read
	// stands in its Error. [procid.ErrGone]: the process has ended.
	Read(p Process, wanted []series.TableID, room *Room, to *Measured) error
	// Close lets go of everything.
	Close() error
}

// Keeper is a source that keeps something of processes of which its tables are wanted.
type Keeper interface {
	// Keep lets go of all processes but those that has says.
	Keep(has func(handle uint64) bool)
}

// All are the sources of a controller.
type All []Source

// Read reads what is wanted of a process, and its signals. nil: the process has ended.
func (all All) Read(p Process, wanted []series.TableID, room *Room) *attunev1.Sample {
	var m Measured
	for _, s := range all {
		mine := slices.DeleteFunc(slices.Clone(wanted), func(id series.TableID) bool { return !slices.Contains(s.Tables(), id) })
		if len(mine) == 0 && !slices.Contains(s.Tables(), series.Signals().ID) {
			continue
		}
		if s.Read(p, mine, room, &m) != nil {
			return nil // it has just ended, which the tracker will tell
		}
	}
	sample := &attunev1.Sample{Process: p.Handle, Tables: m.Details.Tables()}
	if m.Signals != nil {
		sample.Tables = slices.Insert(sample.Tables, 0, m.Signals)
	}
	return sample
}

// Keep has every source let go of all processes but those of which one of its tables
// is wanted.
func (all All) Keep(wanted func(handle uint64) []series.TableID) {
	for _, s := range all {
		if k, ok := s.(Keeper); ok {
			k.Keep(func(handle uint64) bool {
				return slices.ContainsFunc(wanted(handle), func(id series.TableID) bool { return slices.Contains(s.Tables(), id) })
			})
		}
	}
}

// Close closes all sources.
func (all All) Close() error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
