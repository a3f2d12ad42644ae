// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"io"
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

// TestRetold: an Analyzer hears once of each process that lives, and of what has ended since
// there was none: also of a process whose start is held and that is not in the list of those
// that live, for it is ending just then. A connection that breaks meanwhile has told nothing.
func TestRetold(t *testing.T) {
	lives, ending, ended := memberOf(1), memberOf(2), memberOf(3)
	var heard []uint64
	o := NewOutbox(OutboxOptions{
		Silent: true, Living: func() []*member.Member { return []*member.Member{lives} },
		Heard: func(m *member.Member) { heard = append(heard, m.Handle()) },
	})
	o.Started(lives)
	o.Started(ending)
	o.Started(ended)
	o.Ended(ended, &attunev1.ProcessEnded{Process: 3})
	opened := false
	for room := range 4 { // what the connection takes before it breaks
		o.Retell(func(*attunev1.PublishRequest) error {
			if room--; room < 0 {
				return io.ErrClosedPipe
			}
			return nil
		}, func() { opened = true })
		if opened || lives.Told() || ending.Told() || ended.Told() || len(heard) > 0 {
			t.Fatalf("opened: %t, heard of %v though the connection broke", opened, heard)
		}
	}
	var starts, ends []uint64
	o.Retell(func(m *attunev1.PublishRequest) error {
		if end := m.GetProcessEnded(); end != nil {
			ends = append(ends, end.GetProcess())
		} else {
			starts = append(starts, cmp.Or(m.GetProcessStarted(), m.GetProcessChanged()).GetHandle())
		}
		return nil
	}, func() { opened = true })
	if all := []uint64{1, 2, 3}; !opened || !slices.Equal(starts, all) || !slices.Equal(ends, all[2:]) || !slices.Equal(heard, all) {
		t.Errorf("opened: %t; starts %v, ends %v, heard of %v", opened, starts, ends, heard)
	}
}

// TestRetoldWhileItEnds: the next Analyzer hears of the start of a process before its end, wherever
// the process stands on its way out when the one before goes and when the next one comes.
func TestRetoldWhileItEnds(t *testing.T) {
	for name, at := range map[string]struct{ removed, queued int }{
		"queued before the loss":         {0, 0},
		"queued while silent":            {0, 1},
		"queued afterwards":              {0, 2},
		"removed while silent":           {1, 1},
		"removed, and queued afterwards": {1, 2},
		"removed afterwards":             {2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			ends := memberOf(1)
			living := []*member.Member{ends}
			var told []string
			hear := func(m *attunev1.PublishRequest) {
				for _, m := range append(m.GetNews().GetNews(), m) {
					switch {
					case m.GetProcessEnded() != nil:
						told = append(told, "end")
					case m.GetNews() == nil:
						told = append(told, "start")
					}
				}
			}
			o := NewOutbox(OutboxOptions{
				Heard: func(*member.Member) {}, Living: func() []*member.Member { return living }, Send: hear,
			})
			step := func(number int) {
				if at.removed == number {
					living = nil
				}
				if at.queued == number {
					o.Ended(ends, &attunev1.ProcessEnded{Process: 1})
				}
			}
			o.Started(ends)
			o.Flush()
			step(0)
			o.Hush()
			told = nil
			step(1)
			o.Retell(func(m *attunev1.PublishRequest) error {
				hear(m)
				return nil
			}, func() {})
			step(2)
			o.Flush()
			if want := []string{"start", "end"}; !slices.Equal(told, want) || len(o.told) > 0 {
				t.Errorf("told %v, want %v; not let go of: %d", told, want, len(o.told))
			}
		})
	}
}

func memberOf(handle uint64) *member.Member {
	return member.New(&attunev1.Process{Handle: handle}, member.Options{})
}
