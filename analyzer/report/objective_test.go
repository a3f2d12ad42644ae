// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shownFigures are the gain, its interval and the two levels of a line.
var shownFigures = regexp.MustCompile(`^(?:at least )?([0-9.]+) (times better|% worse)(?: \[95 % sure: ([0-9.]+) to ([0-9.]+) times\])?: rate ([0-9.]+) → ([0-9.]+) 1/s`)

// A line never contradicts itself: the words, the ratio, its interval and the two levels
// agree, whatever was measured.
func TestObjectiveAgreesWithItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for range 20000 {
		before, gain := math.Exp(10*rng.NormFloat64()), math.Exp(rng.NormFloat64()*rng.Float64()*4)
		low, high := gain*math.Exp(-rng.ExpFloat64()), gain*math.Exp(rng.ExpFloat64())
		o := &Objective{
			Name: "rate", Unit: "1/s", Gain: &gain, GainLow: &low, GainHigh: &high, LowerIsBetter: rng.IntN(4) == 0,
			Before: Estimate{Median: before, Samples: 9}, After: Estimate{Median: before * gain, Samples: 9},
		}
		if o.LowerIsBetter {
			o.After.Median = before / gain
		}
		text := o.text()
		m := shownFigures.FindStringSubmatch(text)
		if m == nil {
			if !strings.HasPrefix(text, "no difference") {
				t.Fatalf("not understood: %s", text)
			}
			continue
		}
		shown++
		number := func(i int) float64 { v, _ := strconv.ParseFloat(m[i], 64); return v }
		ratio := number(1)
		if m[2] == "% worse" {
			ratio = 1 - ratio/100
		}
		from, to := number(5), number(6)
		if o.LowerIsBetter {
			from, to = to, from
		}
		if (m[2] == "times better") != (to > from) && math.Abs(gain-1) > 0.01 {
			t.Fatalf("the words and the levels differ: %s", text)
		}
		if math.Abs(to/from-ratio) > 0.02*ratio+0.006 {
			t.Fatalf("%v times is not the ratio of the levels, %v: %s", ratio, to/from, text)
		}
		if ratio < number(3)-0.01*ratio-0.006 || ratio > number(4)*1.01+0.006 {
			t.Fatalf("the ratio is not in its interval: %s", text)
		}
	}
	if shown < 10000 {
		t.Errorf("only %d lines had a ratio", shown)
	}
}

// What cannot be told is not told.
func TestObjectiveOfLittle(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	tests := []struct {
		name string
		of   Objective
		want string
	}{
		{"too few events", Objective{TooFew: true, Events: 3, Windows: 68}, "too few events to compare (3 in 68 windows): rate"},
		{"from nothing", Objective{GainLow: number(3), Before: Estimate{Samples: 9}, After: Estimate{Median: 5, Samples: 9}}, "at least 3 times better: rate 0 → 5 1/s"},
		{"from nothing, perhaps by chance", Objective{GainLow: number(0.8), Before: Estimate{Samples: 9}, After: Estimate{Median: 5, Samples: 9}}, "gain unknown: rate 0 → 5 1/s"},
		{"nothing after it", Objective{Before: Estimate{Median: 5, Samples: 9}}, "gain unknown: rate 5 → unknown 1/s"},
		{"slightly worse", Objective{Gain: number(0.994), Before: Estimate{Median: 1000, Samples: 9}, After: Estimate{Median: 994, Samples: 9}}, "0.6 % worse: rate 1000 → 994 1/s"},
		{"at least", Objective{Gain: number(9), GainLow: number(2), Before: Estimate{Median: 1, Samples: 9}, After: Estimate{Median: 9, Samples: 9}}, "9 times better [95 % sure: at least 2 times]: rate 1 → 9 1/s"},
		{"at most", Objective{Gain: number(0.5), GainHigh: number(0.9), Before: Estimate{Median: 2, Samples: 9}, After: Estimate{Median: 1, Samples: 9}}, "50 % worse [95 % sure: at most 0.9 times]: rate 2 → 1 1/s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.of.Name, tt.of.Unit = "rate", "1/s"
			if got := fmt.Sprint(tt.of.text()); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
