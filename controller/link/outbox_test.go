// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/member"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestNewsLeaveTogether: in few messages, each once, in their order.
func TestNewsLeaveTogether(t *testing.T) {
	var sizes []int
	var got []*attunev1.PublishRequest
	o := NewOutbox(OutboxOptions{Heard: func(*member.Member) {}, Send: func(m *attunev1.PublishRequest) {
		batch := m.GetNews().GetNews()
		sizes = append(sizes, len(batch))
		if batch == nil {
			batch = []*attunev1.PublishRequest{m}
		}
		got = append(got, batch...)
	}})
	o.Flush() // of nothing
	const processes = batchOfNews + 5
	for n := range uint64(processes) {
		target := member.New(&attunev1.Process{Handle: n}, member.Options{})
		o.add(news{member: target})
		o.add(news{member: target, ended: &attunev1.ProcessEnded{Process: n}})
	}
	o.Flush()
	last := member.New(&attunev1.Process{Handle: processes}, member.Options{})
	o.add(news{member: last})
	o.Flush()
	if want := []int{batchOfNews, batchOfNews, 10, 0}; !slices.Equal(sizes, want) {
		t.Errorf("messages of %v news, want %v, and the last alone", sizes, want)
	}
	if len(got) != 2*processes+1 || !last.Told() {
		t.Fatalf("%d news, the last one told %v", len(got), last.Told())
	}
	for n := range uint64(processes) {
		start, end := got[2*n].GetProcessStarted(), got[2*n+1].GetProcessEnded()
		if start.GetHandle() != n || end.GetProcess() != n || end == nil {
			t.Fatalf("news of process %d are %v and %v", n, got[2*n], got[2*n+1])
		}
	}
}

// TestNewsAreBounded: while there is no Analyzer the oldest go, and ends among them
// are counted.
func TestNewsAreBounded(t *testing.T) {
	lost := 0
	o := NewOutbox(OutboxOptions{Silent: true, Undelivered: func(loss Loss) { lost += int(loss.Ends) }})
	const more = 3
	for n := range uint64(maxNews/2 + more) {
		o.add(news{member: member.New(&attunev1.Process{Handle: n}, member.Options{})})
		o.add(news{ended: &attunev1.ProcessEnded{Process: n}})
	}
	if lost != more || o.news.Len() != maxNews {
		t.Errorf("%d ends are counted and %d news kept, want %d and %d", lost, o.news.Len(), more, maxNews)
	}
}
