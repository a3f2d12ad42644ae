// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// looks are what is found at times a tenth of a second apart; nil: nothing.
type looks [][]float64

// values returns what a meter makes of them; -1: nothing.
func values(m *meter, found looks) (out []float64) {
	at := time.Unix(100, 0)
	for _, one := range found {
		at = at.Add(100 * time.Millisecond)
		m.rise(nil, one, at)
		value, known := m.take(one, at)
		if !known {
			value = -1
		}
		out = append(out, value)
	}
	return out
}

func TestMeter(t *testing.T) {
	tests := []struct {
		name    string
		meaning Meaning
		found   looks
		want    []float64
	}{
		// What comes before the first match is not of the work, and how long the first one took
		// is not known.
		{"matches", Matches, looks{nil, {1}, {1, 1}, nil, {1}}, []float64{-1, -1, 20, 0, 10}},
		{"sums", Sum, looks{{5}, {2, 3}, nil}, []float64{-1, 50, 0}},
		{"values", Value, looks{nil, {3}, nil, {4, 6}}, []float64{-1, 3, -1, 5}},
		{"a total", Rate, looks{{100}, nil, {110, 120}, {120}}, []float64{-1, -1, 100, 0}},
		{"a total that begins anew", Rate, looks{{100}, {5}, {15}}, []float64{-1, -1, 100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := values(&meter{meaning: tt.meaning}, tt.found)
			if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A running total that is taken for a value is noticed, once.
func TestRisingValues(t *testing.T) {
	m := &meter{meaning: Value}
	var rising looks
	for i := range suspicious {
		rising = append(rising, []float64{float64(i)})
	}
	if values(m, rising); m.hint != "" {
		t.Errorf("%q after %d values", m.hint, suspicious)
	}
	if values(m, looks{{1e3}}); m.hint == "" {
		t.Error("nothing is said")
	}
	m.hint = ""
	if values(m, looks{{1e4}}); m.hint != "" {
		t.Errorf("said again: %q", m.hint)
	}
	m = &meter{meaning: Value}
	if values(m, append(rising[:20], looks{{3}}...)); m.rising != 0 {
		t.Errorf("%d values rose, after one that fell", m.rising)
	}
}

// What happened while nobody looked is not known: it is neither nothing nor much. Of a total it
// is known when that is told again.
func TestSkippedInterval(t *testing.T) {
	for meaning, want := range map[Meaning]float64{Matches: 10, Sum: 10, Rate: 100} {
		m := &meter{meaning: meaning}
		at := time.Unix(100, 0)
		values(m, looks{{1}})
		m.skip(at.Add(10 * time.Second))
		at = at.Add(10*time.Second + 100*time.Millisecond)
		m.rise(nil, []float64{1001}, at)
		value, known := m.take([]float64{1}, at)
		if !known {
			value = -1
		}
		if value-want > 1e-6 || want-value > 1e-6 {
			t.Errorf("%q: %v, want %v", meaning, value, want)
		}
	}
}

// TestValuesAtTheirLimits: what adds up to more than any number is left out, and said once.
func TestValuesAtTheirLimits(t *testing.T) {
	for _, text := range []string{`sum output:(\S+)`, `output:(\S+)`} {
		var values []float64
		var said []string
		s := New(mustParse(t, text))
		for n := range 4 {
			s.take([]float64{1e308, 1e308}, time.Unix(int64(n), 0), Sink{
				Value: func(v float64, _ time.Time) { values = append(values, v) },
				Say:   func(text string) { said = append(said, text) },
			})
		}
		if len(values) > 0 || len(said) != 1 {
			t.Errorf("%s: values %v, said %q", text, values, said)
		}
	}
}
