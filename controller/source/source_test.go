// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// fake reads some tables, and notes what it is asked for.
type fake struct {
	tables []series.TableID
	err    error
	asked  [][]series.TableID
	closed bool
	kept   []uint64 // of the processes 1 and 2
}

func (f *fake) Tables() []series.TableID { return f.tables }

func (f *fake) Read(_ source.Process, wanted []series.TableID, room *source.Room, to *source.Measured) error {
	f.asked = append(f.asked, wanted)
	room.Take(3)
	if slices.Contains(f.tables, series.Signals().ID) {
		to.Signals = series.SignalTable(series.Reading{ID: series.RunTime, Value: 7})
	}
	for _, id := range wanted {
		to.Details.Refuse(id, "why")
	}
	return f.err
}

func (f *fake) Keep(has func(uint64) bool) {
	f.kept = slices.DeleteFunc([]uint64{1, 2}, func(handle uint64) bool { return !has(handle) })
}

func (f *fake) Close() error {
	f.closed = true
	return f.err
}

// A source is asked for its own tables, and only if one of them is wanted or it reads
// the signals.
func TestAll(t *testing.T) {
	signals := &fake{tables: []series.TableID{series.Signals().ID, series.TableThreads}}
	memory := &fake{tables: []series.TableID{series.TableMemory}}
	pipes := &fake{tables: []series.TableID{series.TablePipes}}
	all := source.All{memory, signals, pipes}
	room := source.NewRoom(4)
	s := all.Read(source.Process{Handle: 5}, []series.TableID{series.TableMemory, series.TableThreads, 99}, room)
	d := series.DetailsFrom(s.GetTables())
	if v, ok := series.Signal(s, series.RunTime); !ok || v != 7 || s.GetProcess() != 5 || d.Memory.Error != "why" || d.Threads.Error != "why" || d.Pipes != nil {
		t.Errorf("sample %v", s)
	}
	if len(signals.asked) != 1 || !slices.Equal(signals.asked[0], []series.TableID{series.TableThreads}) || len(pipes.asked) > 0 || room.Left() != 0 {
		t.Errorf("asked %v and %v, room for %d", signals.asked, pipes.asked, room.Left())
	}
	all.Keep(func(handle uint64) []series.TableID {
		return map[uint64][]series.TableID{1: {series.TablePipes}, 2: {series.TableMemory, series.TablePipes}}[handle]
	})
	if !slices.Equal(memory.kept, []uint64{2}) || !slices.Equal(pipes.kept, []uint64{1, 2}) || len(signals.kept) > 0 {
		t.Errorf("kept %v, %v and %v", memory.kept, pipes.kept, signals.kept)
	}
	pipes.err = procid.ErrGone
	if s := all.Read(source.Process{}, []series.TableID{series.TablePipes}, room); s != nil {
		t.Errorf("of a process that has ended: %v", s)
	}
	if err := all.Close(); !errors.Is(err, procid.ErrGone) || !memory.closed || !signals.closed || !pipes.closed {
		t.Errorf("closed: %v", err)
	}
}
