// SPDX-License-Identifier: Apache-2.0

// Looker is a tunlet for tests: it asks for all details of each process, and
// remarks in each what it has seen of each kind.
package main

import (
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(func() sdk.Tunlet { return &looker{seen: map[sdk.Handle]map[string]bool{}} }) }

type looker struct {
	seen map[sdk.Handle]map[string]bool
}

func (*looker) Describe() sdk.Description {
	return sdk.Description{
		Name: "looker", Version: "1", Summary: "tells what it sees of processes",
		Objective: sdk.Objective{Name: "looks", Unit: "1", Description: "how much it has seen"},
	}
}

func (*looker) ProcessStarted(h *sdk.Host, p sdk.Process) {
	h.WantDetails(p.Handle, sdk.DetailThreads, sdk.DetailSockets, sdk.DetailPipes, sdk.DetailMemory)
}

func (l *looker) HandleSamples(h *sdk.Host, samples sdk.Samples) {
	for _, s := range samples.Items {
		for _, text := range texts(s) {
			l.remark(h, s.Process, text)
		}
	}
}

// texts says what is remarkable in a sample.
func texts(s sdk.Sample) (out []string) {
	if calls, ok := s.Value(sdk.WriteCalls); ok && calls > 0 {
		out = append(out, "writes")
	}
	if t := s.Details.Threads; t != nil {
		for _, thread := range t.Items {
			out = append(out, fmt.Sprintf("thread %s of %d", thread.Name, t.Total))
		}
	}
	if d := s.Details.Sockets; d != nil {
		for _, socket := range d.Items {
			out = append(out, socketText(socket))
		}
	}
	if d := s.Details.Pipes; d != nil {
		for _, p := range d.Items {
			if p.Writes && p.QueuedBytes == p.CapacityBytes {
				out = append(out, fmt.Sprintf("pipe %d is full", p.FD))
			}
		}
	}
	if m := s.Details.Memory; m != nil && m.AnonymousBytes > 0 {
		out = append(out, "memory")
	}
	return out
}

func socketText(s sdk.SocketDetail) string {
	host, _, _ := strings.Cut(s.Peer, ":")
	if s.TCP == nil {
		return "unix socket"
	}
	return fmt.Sprintf("%s with %s, unsent %v", s.TCP.State, host, s.TCP.UnsentBytes > 0)
}

// remark says something once of each process.
func (l *looker) remark(h *sdk.Host, p sdk.Handle, text string) {
	if l.seen[p] == nil {
		l.seen[p] = map[string]bool{}
	}
	if !l.seen[p][text] {
		l.seen[p][text] = true
		h.Remark(p, "%s", text)
	}
}
