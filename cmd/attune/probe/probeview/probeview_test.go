// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func view(options Options, text string) (*Printer, *strings.Builder) {
	out := &strings.Builder{}
	at := time.Unix(1, 0)
	options.Output, options.Notes = out, out
	if options.now == nil {
		options.now = func() time.Time { at = at.Add(time.Second); return at }
	}
	p := New(options)
	p.probe(0, &attunev1.Probe{Text: text, Pid: 7, Number: 5, Executable: "/bin/x", Status: &attunev1.PointStatus{
		Point: 3, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "got", CostNanos: 6,
	}})
	p.Flush(false) // its first interval is a partial one
	return p, out
}

func records(data ...[]byte) *attunev1.WatchProbesResponse {
	all := []byte{}
	for _, d := range data {
		all = append(all, d...)
	}
	return &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
		Records: []*attunev1.NamedRecords{{Process: 1, Records: all}},
	}}}
}

func TestHits(t *testing.T) {
	p, out := view(Options{JSON: true}, "a:f take n=arg0:i32, path=arg1:str, x=arg0:f64, y=*arg2 each")
	// Of the string more was there; the last value could not be read, and the
	// second record is of a point that is not known.
	captured := []attunev1.Captured{
		{Kind: attunev1.CapturedSigned, Bits: math.MaxUint64}, {Kind: attunev1.CapturedString, Content: "abcdefghi", Cut: true},
		{Kind: attunev1.CapturedReal, Bits: math.Float64bits(1.5)}, {Kind: attunev1.CapturedUnreadable},
	}
	p.Event(0, records(
		attunev1.AppendRecord(nil, attunev1.Record{Point: 3, Thread: 9}, captured...),
		attunev1.AppendRecord(nil, attunev1.Record{Point: 99, Thread: 9}),
	))
	if want := `"values":{"n":-1,"path":"abcdefghi","x":1.5,"y":null}`; strings.Count(out.String(), `"hit"`) != 1 || !strings.Contains(out.String(), want) {
		t.Errorf("%s lacks %s", out, want)
	}
}

// TestCallers: the address that a call returns to is shown in hexadecimal, with the name of what is there.
func TestCallers(t *testing.T) {
	for name, row := range map[string]struct {
		caller func(int32, uint64) string
		want   string
	}{
		"named": {func(pid int32, address uint64) string {
			if pid != 7 || address != 0x46af {
				return ""
			}
			return "a:g"
		}, "7 a:f caller=a:g 0x46af"},
		"not to be named": {nil, "7 a:f caller=0x46af"},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := view(Options{Caller: row.caller}, "a:f by caller")
			key := uint64(0x46af)
			p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
				Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 2, Key: &key}}},
			}}})
			p.Flush(false)
			if !strings.Contains(out.String(), row.want) {
				t.Errorf("%s lacks %q", out, row.want)
			}
			p, out = view(Options{Caller: row.caller}, "a:f take caller")
			p.Event(0, records(attunev1.AppendRecord(nil, attunev1.Record{Point: 3, Thread: 9}, attunev1.Captured{Kind: attunev1.CapturedUnsigned, Bits: key})))
			if want := strings.TrimPrefix(row.want, "7 a:f "); !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q", out, want)
			}
		})
	}
}

// TestCallersOfTheLastInterval: of a process that has ended they are asked for once more.
func TestCallersOfTheLastInterval(t *testing.T) {
	var asked []string
	p, _ := view(Options{
		Caller: func(int32, uint64) string { asked = append(asked, "caller"); return "" },
		Ended:  func(pid int32) { asked = append(asked, fmt.Sprint("ended ", pid)) },
	}, "a:f by caller")
	key := uint64(0x46af)
	p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
		Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 2, Key: &key}}},
	}}})
	p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: 7}})
	p.Flush(false)
	p.Flush(false)
	if want := []string{"caller", "ended 7"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// TestWhatCanBeDone: a point that is off or sees nothing says what to do.
func TestWhatCanBeDone(t *testing.T) {
	p, out := view(Options{}, "libx.so:f sum arg0")
	p.Unhit()
	if want := "attune: 7 libx.so:f sum arg0: not hit: calls within libx.so and through pointers do not pass its GOT slots; libx.so:f%return sees these as well"; !strings.Contains(out.String(), want) {
		t.Errorf("%s lacks %q", out, want)
	}
	// Also when its process has ended.
	out.Reset()
	p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: 7}})
	p.Flush(true)
	p.Unhit()
	if got, programs := out.String(), p.Programs(); strings.Count(got, "not hit: ") != 1 || programs != "x (process 7)" {
		t.Errorf("%q, programs %q", got, programs)
	}
	p, out = view(Options{}, "libx.so:f sum arg0")
	p.probe(0, &attunev1.Probe{Text: "libx.so:f sum arg0", Pid: 7, Number: 5, Status: &attunev1.PointStatus{
		Point: 3, State: attunev1.PointState_POINT_STATE_OFF, Mechanism: "got", DegradedReason: "it took 12 %, where the budget is 2 %",
	}})
	p.Unhit()
	if got := out.String(); !strings.Contains(got, "the budget is 2 %; --budget PERCENT lets points take more") || strings.Contains(got, "not hit") {
		t.Error(got)
	}
}

func TestIntervals(t *testing.T) {
	p, out := view(Options{Histogram: true}, "a:f sum n=arg2 by arg0")
	one, two := uint64(1), uint64(2)
	p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
		Aggregates: []*attunev1.NamedAggregate{
			{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 2, Sum: 30, Min: 10, Max: 20, Key: &one, Histogram: []uint64{0, 0, 0, 0, 1, 1}}},
			{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 1, Sum: 5, Min: 5, Max: 5, Key: &one, Histogram: []uint64{0, 0, 0, 1}}},
			{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 7, Sum: 7, Min: 1, Max: 1, Key: &two}},
			{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Unreadable: 4}},
		},
	}}})
	p.Flush(false)
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"7 7 1 1.0 1 7 7 a:f arg0=2 3 3 5 11.7 20 35 7 a:f arg0=1 0 0 7 a:f (4 unreadable)", "≥ 4 ####",
		"placed by got, about 6 ns a hit",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", out, want)
		}
	}
	out.Reset()
	p.Flush(true)
	if out.Len() != 0 {
		t.Errorf("of an interval without hits: %s", out)
	}
}

// The first bar of values that may be negative is not of 0 alone.
func TestFirstBar(t *testing.T) {
	for text, want := range map[string]string{"a:f sum n=arg2:i32": "≤ 0 #", "a:f sum n=arg2": " 0 #"} {
		p, out := view(Options{Histogram: true}, text)
		p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
			Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 2, Histogram: []uint64{2}}}},
		}}})
		p.Flush(false)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "≤") != strings.Contains(want, "≤") {
			t.Errorf("%s: %s lacks %q", text, out, want)
		}
	}
}

// A point that is refused twice is one point, one that is placed later none,
// and two sessions number theirs alike. That of a descendant was not asked for, and is
// forgotten with its process.
func TestRefused(t *testing.T) {
	p, out := view(Options{Pids: []int32{8, 9}}, "a:f")
	tell := func(stream int, pid int32, state attunev1.PointState, reason string) {
		p.Event(stream, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Probe{Probe: &attunev1.Probe{
			Text: "b:g", Pid: pid, Number: 5, Status: &attunev1.PointStatus{Point: 3, State: state, Reason: reason},
		}}})
	}
	refused, placed := attunev1.PointState_POINT_STATE_REFUSED, attunev1.PointState_POINT_STATE_PLACED
	out.Reset()
	tell(1, 8, refused, "no such object")
	tell(1, 8, refused, "no such object")
	tell(2, 9, refused, "no such object")
	if p.Refused() != 2 || strings.Count(out.String(), "no such object") != 2 {
		t.Errorf("%d refused, told as %s", p.Refused(), out)
	}
	for range 2 { // the second has the number of the first
		tell(1, 10, refused, "no such program")
		p.Event(1, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: 10}})
	}
	if p.Refused() != 2 || len(p.refused) != 2 || strings.Count(out.String(), "no such program") != 2 {
		t.Errorf("%d refused with a descendant, %d known, told as %s", p.Refused(), len(p.refused), out)
	}
	tell(1, 8, refused, "no such symbol")
	tell(2, 9, placed, "")
	if p.Refused() != 1 || strings.Count(out.String(), "no such symbol") != 1 {
		t.Errorf("%d refused, told as %s", p.Refused(), out)
	}
	p.Event(2, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
		Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: 5}}},
	}}})
	out.Reset()
	p.Flush(false)
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "5 5 9 b:g") || strings.Contains(text, "5 5 7 a:f") {
		t.Errorf("hits of the second session shown as %s", text)
	}
}

// Points at one function are told apart by what is taken there.
func TestPointsAtOneFunction(t *testing.T) {
	p, out := view(Options{}, "a:f sum arg0")
	count := func(number string) *attunev1.WatchProbesResponse {
		return &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
			Aggregates: []*attunev1.NamedAggregate{{PointId: number, Aggregate: &attunev1.Aggregate{Point: 3, Count: 1, Sum: 4, Min: 4, Max: 4}}},
		}}}
	}
	p.Event(0, count("5"))
	p.Flush(false)
	if text := out.String(); !strings.HasSuffix(text, "7 a:f\n") {
		t.Errorf("one point:\n%s", text)
	}
	p.probe(0, &attunev1.Probe{Text: "a:f if arg1 > 4", Pid: 7, Number: 6, Status: &attunev1.PointStatus{
		Point: 3, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "got",
	}})
	p.Event(0, count("6"))
	p.Flush(false)
	for _, want := range []string{"7 a:f sum arg0\n", "7 a:f if arg1 > 4 (partial: in place for 1 s)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %q", out, want)
		}
	}
}

// A rate is over the time in which the point was in place, and the row says so.
func TestPartialInterval(t *testing.T) {
	at := time.Unix(100, 0)
	p, out := view(Options{now: func() time.Time { return at }}, "a:f")
	tell := func(state attunev1.PointState) {
		p.probe(0, &attunev1.Probe{Text: "a:f", Pid: 7, Number: 5, Status: &attunev1.PointStatus{Point: 3, State: state}})
	}
	count := func(n uint64) {
		p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Hits{Hits: &attunev1.HandleEventsRequest{
			Aggregates: []*attunev1.NamedAggregate{{PointId: "5", Aggregate: &attunev1.Aggregate{Point: 3, Count: n}}},
		}}})
	}
	placed, off := attunev1.PointState_POINT_STATE_PLACED, attunev1.PointState_POINT_STATE_OFF
	p.Flush(false)
	for _, step := range []struct {
		name  string
		after time.Duration // of the interval of a second
		state attunev1.PointState
		hits  uint64
		want  string
	}{
		{"the whole interval", 0, placed, 1000, "1000 1k 7 a:f"},
		{"switched off in it", 500 * time.Millisecond, off, 600, "600 1.2k 7 a:f (partial: in place for 0.5 s)"},
		{"the remains of the one before", 0, off, 5, "5 7 a:f"},
		{"back in it", 750 * time.Millisecond, placed, 300, "300 1.2k 7 a:f (partial: in place for 0.25 s)"},
		{"and whole again", 0, placed, 1000, "1000 1k 7 a:f"},
	} {
		at = at.Add(step.after)
		tell(step.state)
		count(step.hits)
		at = at.Add(time.Second - step.after)
		out.Reset()
		p.Flush(false)
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.HasSuffix(got, " process and point "+step.want) {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
	at = at.Add(200 * time.Millisecond)
	count(400)
	p.Event(0, &attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Ended{Ended: 7}}) // without a status
	at = at.Add(800 * time.Millisecond)
	out.Reset()
	p.Flush(false)
	if want := "400 2k 7 a:f (partial: in place for 0.2 s)"; !strings.HasSuffix(strings.Join(strings.Fields(out.String()), " "), want) {
		t.Errorf("the process ends: %s lacks %q", out, want)
	}
}
