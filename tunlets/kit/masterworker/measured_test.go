// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"math"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		run, cpus, workers, want float64
	}{
		{"alone", 1, 4, 4, 1},
		{"in each other's way", 0.25, 2, 8, 0.25},
		{"other programs, enough CPUs for the workers", 0.3, 4, 4, 1},
		{"other programs beside", 0.1, 2, 8, 0.25},
	} {
		if got := (Measured{RunShare: tt.run, CPUs: tt.cpus}).Share(tt.workers); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRunShare(t *testing.T) {
	sample := func(at int64, run, wait float64) sdk.Sample {
		return sdk.Sample{At: time.Unix(at, 0)}.With(sdk.RunTime, run).With(sdk.RunqueueWait, wait)
	}
	spans := []sdk.Span{
		sdk.SpanBetween(sample(1, 0, 0), sample(2, 3e8, 1e8)),
		sdk.SpanBetween(sample(1, 0, 0), sample(2, 1e8, 3e8)),
		{},
	}
	if got := runShare(spans); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("share %v, want a half", got)
	}
	if got := runShare(nil); got != 1 {
		t.Errorf("share %v of nothing, want 1", got)
	}
}

func TestCPUs(t *testing.T) {
	type process struct {
		host    string
		allowed float64 // 0: no sample yet
		usable  sdk.CPUList
	}
	for _, tt := range []struct {
		name    string
		members []process
		want    float64
	}{
		{"threads", []process{{"a", 4, "0-3"}}, 4},
		{"the program has less than there is", []process{{"a", 4, "0-7"}}, 4},
		{"ranks bound to one core each", []process{{"a", 1, "0-7"}, {"a", 1, "0-7"}, {"a", 1, "0-7"}}, 3},
		{"processes that share all CPUs", []process{{"a", 4, "0-3"}, {"a", 4, "0-3"}}, 4},
		{"usable CPUs not known", []process{{"a", 4, ""}, {"a", 4, ""}}, 4},
		{"four nodes", []process{{"a", 8, "0-7"}, {"b", 8, "0-7"}, {"c", 8, "0-7"}, {"d", 8, "0-7"}}, 32},
		{"one without a sample", []process{{"a", 2, "0-7"}, {"a", 0, "0-7"}}, 2},
		{"nothing known", nil, 0},
	} {
		tunlet := Tunlet{members: map[sdk.Handle]*member{}}
		for i, p := range tt.members {
			m := &member{host: p.host, usable: p.usable, points: map[string]bool{kindRound: true}, window: sdk.NewWindow(windowSpan)}
			if p.allowed > 0 {
				m.window.Add(sdk.Sample{At: time.Unix(1, 0)}.With(sdk.CPUsAllowed, p.allowed))
			}
			tunlet.members[sdk.Handle(i)] = m
		}
		if got := tunlet.cpus(); got != tt.want {
			t.Errorf("%s: %v CPUs, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMeasured(t *testing.T) {
	var m Measured
	for range 2 {
		m.add(kindRound, sdk.Aggregate{Count: 10, Sum: 160, Min: 16, Max: 16}, true, false)
		m.add(kindRound, sdk.Aggregate{Count: 99, Sum: 99}, false, false)
		m.add(kindDispatch, sdk.Aggregate{Count: 160, Sum: 16e6}, true, false)
		m.add(kindTask, sdk.Aggregate{Count: 160, Sum: 8e8}, false, false)
	}
	m.Seconds = 2
	if m.Rounds != 20 || m.Value != 16 || m.Dispatches != 320 || math.Abs(m.DispatchSeconds-0.032) > 1e-12 || m.Tasks != 320 || m.TaskSeconds != 1.6 {
		t.Errorf("%+v", m)
	}
	if m.Period() != 0.1 || !m.Enough() || (Measured{}).Enough() {
		t.Errorf("period %v, enough %v", m.Period(), m.Enough())
	}
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		bits uint64
		real bool
		want float64
	}{{16, false, 16}, {^uint64(0), false, -1}, {math.Float64bits(0.25), true, 0.25}, {math.Float64bits(math.NaN()), true, 0}} {
		if got := number(tt.bits, tt.real); got != tt.want {
			t.Errorf("%#x: %v, want %v", tt.bits, got, tt.want)
		}
	}
}
