// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = attunev1.DetailKind_DETAIL_KIND_THREADS
	socketKind = attunev1.DetailKind_DETAIL_KIND_SOCKETS
	pipeKind   = attunev1.DetailKind_DETAIL_KIND_PIPES
	memoryKind = attunev1.DetailKind_DETAIL_KIND_MEMORY
)

// wantDetails asks for details of processes, and of no others.
func (b *bench) wantDetails(t *testing.T, wanted ...*attunev1.DetailInterest) {
	t.Helper()
	b.ask(t, &attunev1.ManageResponse{RequestId: "details", Request: &attunev1.ManageResponse_Details{
		Details: &attunev1.SetDetails{Processes: wanted},
	}})
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
	if d := b.sampleOf(t, "sample", process, func(*attunev1.Sample) bool { return true }).GetDetails(); d != nil {
		t.Errorf("details that nobody asked for: %v", d)
	}
	b.wantDetails(t, &attunev1.DetailInterest{Process: process, Kinds: []attunev1.DetailKind{threadKind, socketKind}},
		&attunev1.DetailInterest{Process: 9999, Kinds: []attunev1.DetailKind{threadKind}})
	d := b.sampleOf(t, "sample with sockets", process, func(s *attunev1.Sample) bool {
		return len(s.GetDetails().GetSockets().GetItems()) > 0
	}).GetDetails()
	established := slices.ContainsFunc(d.GetSockets().GetItems(), func(s *attunev1.SocketDetail) bool {
		return s.GetTcp().GetState() == "established" && strings.HasPrefix(s.GetPeer(), "127.0.0.1:")
	})
	if threads := d.GetThreads(); !established || threads.GetTotal() != 1 || threads.GetItems()[0].GetTid() != int32(target.PID) ||
		threads.GetItems()[0].GetName() != "files" || d.GetPipes() != nil || d.GetMemory() != nil {
		t.Errorf("details %v", d)
	}
	b.wantDetails(t, &attunev1.DetailInterest{Process: process, Kinds: []attunev1.DetailKind{pipeKind, memoryKind}})
	b.sampleOf(t, "sample with pipes", process, func(s *attunev1.Sample) bool {
		return len(s.GetDetails().GetPipes().GetItems()) > 0 && s.GetDetails().GetThreads() == nil
	})
	b.wantDetails(t)
	b.sampleOf(t, "sample without details", process, func(s *attunev1.Sample) bool { return s.GetDetails() == nil })
	b.stop(t)
}

// A connection that is lost takes along what was asked for by it.
func TestDetailsEndWithTheConnection(t *testing.T) {
	b := start(t, roaming)
	target := targets.Start(t, targets.Build(t, "testdata/storm.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID).GetHandle()
	b.wantDetails(t, &attunev1.DetailInterest{Process: process, Kinds: []attunev1.DetailKind{threadKind}})
	b.sampleEvery(t, 20*time.Millisecond)
	b.sampleOf(t, "sample with threads", process, func(s *attunev1.Sample) bool { return s.GetDetails().GetThreads() != nil })
	b.hide()
	b.show(t)
	b.sampleEvery(t, 20*time.Millisecond)
	b.sampleOf(t, "sample without details", process, func(s *attunev1.Sample) bool { return s.GetDetails() == nil })
	b.stop(t)
}

// Where there is no room for all processes in a round they take turns, and none
// of them goes without its signals.
func TestDetailsOfManyProcesses(t *testing.T) {
	const threads, processes = 50, 5
	b := start(t)
	var wanted []*attunev1.DetailInterest
	for range processes {
		target := targets.Start(t, targets.Build(t, "sample/testdata/threads.c"), b.controller.Environment()...)
		target.Ask(t, "threads 50")
		wanted = append(wanted, &attunev1.DetailInterest{
			Process: b.withDMLib(t, target.PID).GetHandle(), Kinds: []attunev1.DetailKind{threadKind},
		})
	}
	b.wantDetails(t, wanted...)
	b.sampleEvery(t, 20*time.Millisecond)
	const perRound = 128 // of all processes together, see meter
	told := map[uint64]map[int32]bool{}
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
					told[s.GetProcess()] = map[int32]bool{}
				}
				for _, thread := range s.GetDetails().GetThreads().GetItems() {
					told[s.GetProcess()][thread.GetTid()] = true
					read++
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
