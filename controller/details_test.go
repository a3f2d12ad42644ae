// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = uint32(series.TableThreads)
	socketKind = uint32(series.TableSockets)
	pipeKind   = uint32(series.TablePipes)
	memoryKind = uint32(series.TableMemory)
)

// wantDetails asks for details of processes, and of no others.
func (b *bench) wantDetails(t *testing.T, wanted ...*attunev1.TableWant) {
	t.Helper()
	b.want.Tables = wanted
	b.ask(t, b.wanting())
}

// sampleOf waits for a sample of a process that pick accepts.
func (b *bench) sampleOf(t *testing.T, what string, process uint64, pick func(*attunev1.Sample) bool) *attunev1.Sample {
	t.Helper()
	return event(t, b, what, func(m *attunev1.PublishRequest) (*attunev1.Sample, bool) {
		for _, s := range m.GetSamples().GetSamples() {
			if s.GetProcess() == process && pick(s) {
				return s, true
			}
		}
		return nil, false
	})
}

func TestDetails(t *testing.T) {
	b := start(t)
	target := targets.Start(t, targets.Build(t, "detail/testdata/files.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID).GetHandle()
	target.Ask(t, "tcp")
	b.sampleEvery(t, 20*time.Millisecond)
	if tables := b.sampleOf(t, "sample", process, func(*attunev1.Sample) bool { return true }).GetTables(); len(tables) != 1 {
		t.Errorf("details that nobody asked for: %v", tables)
	}
	b.wantDetails(t, &attunev1.TableWant{Process: process, Tables: []uint32{threadKind, socketKind}},
		&attunev1.TableWant{Process: 9999, Tables: []uint32{threadKind}})
	d := series.DetailsFrom(b.sampleOf(t, "sample with sockets", process, func(s *attunev1.Sample) bool {
		d := series.DetailsFrom(s.GetTables())
		return d.Sockets != nil && len(d.Sockets.Items) > 0
	}).GetTables())
	established := slices.ContainsFunc(d.Sockets.Items, func(s series.Socket) bool {
		return s.TCP != nil && s.TCP.State == "established" && strings.HasPrefix(s.Peer, "127.0.0.1:")
	})
	if threads := d.Threads; !established || threads.Total != 1 || threads.Items[0].TID != target.PID ||
		threads.Items[0].Name != "files" || d.Pipes != nil || d.Memory != nil {
		t.Errorf("details %v", d)
	}
	b.wantDetails(t, &attunev1.TableWant{Process: process, Tables: []uint32{pipeKind, memoryKind}})
	b.sampleOf(t, "sample with pipes", process, func(s *attunev1.Sample) bool {
		d := series.DetailsFrom(s.GetTables())
		return d.Pipes != nil && len(d.Pipes.Items) > 0 && d.Threads == nil
	})
	b.wantDetails(t)
	b.sampleOf(t, "sample without details", process, func(s *attunev1.Sample) bool { return len(s.GetTables()) == 1 })
	b.stop(t)
}

// An Analyzer that comes back says all that it wants: what was wanted before is not.
func TestDetailsEndWithTheConnection(t *testing.T) {
	b := start(t, roaming)
	target := targets.Start(t, targets.Build(t, "testdata/storm.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID).GetHandle()
	b.wantDetails(t, &attunev1.TableWant{Process: process, Tables: []uint32{threadKind}})
	b.sampleEvery(t, 20*time.Millisecond)
	b.sampleOf(t, "sample with threads", process, func(s *attunev1.Sample) bool { return series.DetailsFrom(s.GetTables()).Threads != nil })
	b.hide()
	b.want.Tables = nil
	b.show(t)
	b.sampleEvery(t, 20*time.Millisecond)
	b.sampleOf(t, "sample without details", process, func(s *attunev1.Sample) bool { return len(s.GetTables()) == 1 })
	b.stop(t)
}

// Where there is no room for all processes in a round they take turns, and none
// of them goes without its signals.
func TestDetailsOfManyProcesses(t *testing.T) {
	const threads, processes = 50, 5
	b := start(t)
	var wanted []*attunev1.TableWant
	for range processes {
		target := targets.Start(t, targets.Build(t, "sample/testdata/threads.c"), b.controller.Environment()...)
		target.Ask(t, "threads 50")
		wanted = append(wanted, &attunev1.TableWant{
			Process: b.withDMLib(t, target.PID).GetHandle(), Tables: []uint32{threadKind},
		})
	}
	b.wantDetails(t, wanted...)
	b.sampleEvery(t, 20*time.Millisecond)
	const perRound = 128 // of all processes together, see meter
	told := map[uint64]map[int]bool{}
	done := func() bool {
		for _, w := range wanted {
			if len(told[w.GetProcess()]) < threads {
				return false
			}
		}
		return true
	}
	for !done() {
		event(t, b, "round", func(m *attunev1.PublishRequest) (bool, bool) {
			read := 0
			for _, s := range m.GetSamples().GetSamples() {
				if told[s.GetProcess()] == nil {
					told[s.GetProcess()] = map[int]bool{}
				}
				if threads := series.DetailsFrom(s.GetTables()).Threads; threads != nil {
					for _, thread := range threads.Items {
						told[s.GetProcess()][thread.TID] = true
						read++
					}
				}
			}
			if n := len(m.GetSamples().GetSamples()); n > 0 && (n != processes || read > perRound) {
				t.Errorf("%d processes, %d threads in a round", n, read)
			}
			return true, len(m.GetSamples().GetSamples()) > 0
		})
	}
	b.stop(t)
}
