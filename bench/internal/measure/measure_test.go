// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func resultOf(text ...string) Result {
	r := Result{Started: time.Unix(100, 0), Wall: 4 * time.Second}
	for i, t := range text {
		r.Lines = append(r.Lines, Line{At: time.Unix(101+int64(i), 0), Text: t})
	}
	return r
}

func TestRate(t *testing.T) {
	tests := []struct {
		name   string
		format Format
		lines  []string
		want   float64
		err    error
	}{
		{"native", Native(), []string{"start", "progress 0.100 7", "total 2.000000 500"}, 250, nil},
		{"native, cut short", Native(), []string{"start", "progress 0.100 7"}, 0, ErrNoRate},
		{"native, no time at all", Native(), []string{"total 0.000000 3"}, 0, ErrNoRate},
		{"lammps", LAMMPS(), []string{"   CPU            Step", "Loop time of 3.25 on 4 procs for 3250 steps with 500 atoms"}, 1000, nil},
		{"nothing", LAMMPS(), nil, 0, ErrNoRate},
		{"a rate, the last one counts", Summary(`^(?P<rate>[\d.]+) req/s$`), []string{"7.5 req/s", "12.5 req/s"}, 12.5, nil},
		{"seconds and count", Summary(`^(?P<count>\d+) in (?P<seconds>\S+)$`), []string{"30 in 1.5"}, 20, nil},
		{"the time of the process", Format{}, []string{"anything"}, 0.25, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.format.Rate(resultOf(tt.lines...))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %v, %v; want %v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// The line that came soonest after it was written says when the program's clock began.
func TestProgress(t *testing.T) {
	got := Native().Progress(resultOf("start", "progress 1.900 7", "progress 2.500 9", "progress x 10", "total 3 12"))
	began := time.Unix(102, 0).Add(-1900 * time.Millisecond)
	want := []Reading{{began.Add(1900 * time.Millisecond), 7}, {began.Add(2500 * time.Millisecond), 9}}
	if !slices.EqualFunc(got, want, func(a, b Reading) bool { return a.At.Equal(b.At) && a.Count == b.Count }) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := LAMMPS().Progress(resultOf("progress 1.0 7")); got != nil {
		t.Errorf("of a format without such lines: got %v", got)
	}
}

func TestBeginning(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  time.Time
	}{
		{"said", []string{"LAMMPS (7 Jan 2022)", "   CPU            Step          Temp"}, time.Unix(102, 0)},
		{"not said", []string{"LAMMPS (7 Jan 2022)"}, time.Unix(100, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := LAMMPS().Beginning(resultOf(tt.lines...)); !got.Equal(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	if got := Median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("odd: got %v, want 2", got)
	}
	if got := Median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("even: got %v, want 2.5", got)
	}
	for name, values := range map[string][]float64{"none": nil, "one not measured": {1, math.NaN(), 2}} {
		if median, quantile := Median(values), Quantile(values, 0.9); !math.IsNaN(median) || !math.IsNaN(quantile) {
			t.Errorf("%s: median %v, quantile %v, want NaN", name, median, quantile)
		}
	}
}

func TestPairs(t *testing.T) {
	missing := math.NaN()
	a, b := []float64{2, missing, 6, 8, 10}, []float64{1, 2, missing, 2}
	if got := Ratios(a, b); !slices.Equal(got, []float64{2, 4}) {
		t.Errorf("ratios %v, want those of the first pair and the fourth", got)
	}
	if got := Differences(a, b); !slices.Equal(got, []float64{1, 6}) {
		t.Errorf("differences %v, want those of the first pair and the fourth", got)
	}
	if got := Known(a); !slices.Equal(got, []float64{2, 6, 8, 10}) || len(a) != 5 {
		t.Errorf("known %v of %v", got, a)
	}
}

func TestMedianInterval(t *testing.T) {
	for n, want := range map[int][2]float64{
		0: {math.Inf(-1), math.Inf(1)}, 4: {math.Inf(-1), math.Inf(1)}, 5: {1, 5}, 7: {1, 7}, 8: {1, 8}, 11: {3, 9}, 15: {4, 12},
	} {
		var values []float64
		for i := range n {
			values = append(values, float64(n-i))
		}
		if low, high := MedianInterval(values); low != want[0] || high != want[1] {
			t.Errorf("of 1 to %d: %v to %v, want %v", n, low, high, want)
		}
	}
}

func TestRunGivesOutputAndSettings(t *testing.T) {
	t.Setenv("GLIBC_TUNABLES", "glibc.malloc.top_pad=1")
	r, err := Run(t.Context(), []string{"sh", "-c", `echo "[$GLIBC_TUNABLES]"; echo "[$OMPI_MCA_x]"`}, "OMPI_MCA_x=1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range r.Lines {
		got = append(got, line.Text)
	}
	if want := []string{"[]", "[1]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRunSaysWhyItFailed(t *testing.T) {
	_, err := Run(t.Context(), []string{"sh", "-c", "echo no such input >&2; exit 3"})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such input") {
		t.Errorf("got %v, want the exit status and the message", err)
	}
}

func TestAwait(t *testing.T) {
	looks := 0
	if err := Await(t.Context(), time.Hour, "the third look", func() bool { looks++; return looks == 3 }); err != nil || looks != 3 {
		t.Errorf("after %d looks: %v", looks, err)
	}
	never := func() bool { return false }
	if err := Await(t.Context(), time.Millisecond, "nothing", never); err == nil || err.Error() != "nothing: not within 1ms" {
		t.Errorf("in vain: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Await(ended, time.Hour, "nothing", never); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for share, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Quantile(values, share); got != want {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing %v, want NaN", got)
	}
}
