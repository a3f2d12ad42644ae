// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

var start = time.Unix(1000, 0)

// fill adds samples every 50 ms with the given fault counts.
func fill(w *sdk.Window, faults ...float64) {
	for i, f := range faults {
		at := start.Add(time.Duration(i) * 50 * time.Millisecond)
		w.Add(sdk.Sample{At: at}.With(sdk.MinorFaults, f))
	}
}

func TestWindowRates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length time.Duration
		faults []float64
		rate   float64
		ok     bool
		span   time.Duration
	}{
		{"no sample", time.Second, nil, 0, false, 0},
		{"one sample", time.Second, []float64{5}, 0, false, 0},
		{"two samples", time.Second, []float64{0, 100}, 2000, true, 50 * time.Millisecond},
		{"older samples are forgotten", 100 * time.Millisecond, []float64{0, 0, 0, 100, 200}, 2000, true, 100 * time.Millisecond},
		{"a counter that falls is no negative rate", time.Second, []float64{100, 0}, 0, true, 50 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sdk.NewWindow(tt.length)
			fill(w, tt.faults...)
			rate, ok := w.Span().Rate(sdk.MinorFaults)
			if rate != tt.rate || ok != tt.ok || w.Span().Duration() != tt.span {
				t.Errorf("rate %v %v over %v, want %v %v over %v", rate, ok, w.Span().Duration(), tt.rate, tt.ok, tt.span)
			}
			if _, ok := w.Span().Rate(sdk.RunTime); ok {
				t.Error("a rate of a signal that was never read")
			}
		})
	}
}

func TestWindowParts(t *testing.T) {
	w := sdk.NewWindow(time.Second)
	fill(w, 0, 10, 30, 60)
	if d, _ := w.Latest(100 * time.Millisecond).Delta(sdk.MinorFaults); d != 50 {
		t.Errorf("latest 100 ms: %v faults, want 50", d)
	}
	if d, _ := w.Since(start.Add(100 * time.Millisecond)).Delta(sdk.MinorFaults); d != 30 {
		t.Errorf("since 100 ms: %v faults, want 30", d)
	}
	if s := w.Since(start.Add(time.Hour)); s.Duration() != 0 {
		t.Errorf("since the future: %v, want nothing", s.Duration())
	}
	if v, ok := w.Max(sdk.MinorFaults); v != 60 || !ok {
		t.Errorf("max %v %v, want 60", v, ok)
	}
	if v, ok := w.Last(sdk.MinorFaults); v != 60 || !ok {
		t.Errorf("last %v %v, want 60", v, ok)
	}
	w.Reset()
	if _, ok := w.Last(sdk.MinorFaults); ok {
		t.Error("a last value after Reset")
	}
}

func TestWindowDropsOldNews(t *testing.T) {
	w := sdk.NewWindow(time.Second)
	fill(w, 0, 10)
	w.Add(sdk.Sample{At: start}.With(sdk.MinorFaults, 1e9))
	if v, _ := w.Last(sdk.MinorFaults); v != 10 {
		t.Errorf("last %v after a sample from the past, want 10", v)
	}
}

// A window that is long for the pace of its samples covers its length, though it does not
// keep them all: in it the newest ones are whole.
func TestWindowIsBounded(t *testing.T) {
	const pace = time.Millisecond
	for _, length := range []time.Duration{time.Hour, time.Minute, time.Second} {
		w := sdk.NewWindow(length)
		for i := range 100_000 {
			w.Add(sdk.Sample{At: start.Add(time.Duration(i) * pace)}.With(sdk.MinorFaults, float64(i)))
			covered := w.Span().Duration()
			if want := min(length, time.Duration(i)*pace); covered < want || covered > want+want/50 {
				t.Fatalf("the window of %v covers %v after %d samples", length, covered, i)
			}
			if d, _ := w.Latest(50 * pace).Delta(sdk.MinorFaults); i >= 50 && d != 50 {
				t.Fatalf("%v faults in the latest %v, want 50", d, 50*pace)
			}
		}
		samples := 1
		for left := w.Span().Duration(); left > 0; samples++ {
			left = w.Since(start.Add(99_999*pace - left + 1)).Duration()
		}
		if samples > 256 {
			t.Errorf("the window of %v has %d samples", length, samples)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"one", []float64{3}, 3},
		{"odd", []float64{9, 1, 2}, 2},
		{"even", []float64{4, 1, 2, 9}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sdk.Median(tt.values); got != tt.want {
				t.Errorf("median %v, want %v", got, tt.want)
			}
		})
	}
	values := []float64{3, 1, 2}
	sdk.Median(values)
	if values[0] != 3 {
		t.Errorf("median sorted its argument: %v", values)
	}
}

// A gauge that goes up and down is where it was, whatever two samples say.
func TestRise(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64 // a second apart
		want   float64
		ok     bool
	}{
		{"none", nil, 0, false},
		{"one", []float64{5}, 0, false},
		{"saw", []float64{0, 4, 8, 0, 4, 8, 0, 4, 8}, 0, true},
		{"grows", []float64{0, 2, 4, 6}, 8 / 3.0, true},
		{"shrinks", []float64{8, 6, 4, 2}, -8 / 3.0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sdk.NewWindow(time.Hour)
			for i, v := range tt.values {
				w.Add(sdk.Sample{At: time.Unix(int64(i+1), 0)}.With(sdk.ResidentBytes, v))
			}
			if got, ok := w.Rise(sdk.ResidentBytes); got != tt.want || ok != tt.ok {
				t.Errorf("%v %v, want %v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// A site has thousands of windows of processes in which nothing happens.
func TestAWindowThatIsResetKeepsNoMemory(t *testing.T) {
	const windows = 1000
	alive := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	list := make([]*sdk.Window, windows)
	before := alive()
	for i := range list {
		list[i] = sdk.NewWindow(time.Second)
		fill(list[i], make([]float64, 20)...)
		list[i].Reset()
	}
	if each := (int64(alive()) - int64(before)) / windows; each > 128 {
		t.Errorf("an empty window has %d bytes", each)
	}
	runtime.KeepAlive(list)
}
