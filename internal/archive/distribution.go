// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"math"
	"sort"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/attune-hpc/attune/internal/estimate"
)

// Distribution describes what many tasks have in a field.
type Distribution struct {
	Field string  `json:"field"`
	Tasks int     `json:"tasks"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	Mean  float64 `json:"mean"`
	// Sum is absent of what does not add up, as memory of tasks at different times.
	Sum *float64 `json:"sum,omitempty"`
	// Deviation is the standard deviation of the sample, Skewness and Kurtosis its
	// standardised third and fourth moments, the latter less the 3 of a normal
	// distribution. They are absent where there are too few tasks, or all are the same.
	Deviation *float64   `json:"deviation,omitempty"`
	Skewness  *float64   `json:"skewness,omitempty"`
	Kurtosis  *float64   `json:"kurtosis,omitempty"`
	Quantiles []Quantile `json:"quantiles"`
	Histogram []Bin      `json:"histogram"`
}

// Quantile is the value below which a part of the tasks is.
type Quantile struct {
	At    float64 `json:"at"`
	Value float64 `json:"value"`
}

// Bin is how many tasks have a value of From or more, and less than To; the last one has
// the greatest value too.
type Bin struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Tasks int     `json:"tasks"`
}

// addsUp says whether what several tasks have in a field is what they had together.
func addsUp(field string) bool {
	object, _, _ := strings.Cut(field, ".")
	switch object {
	case "io", "context_switches", "faults", "cpu_seconds", "user_seconds", "system_seconds", "cpu_wait_seconds":
		return true
	}
	return field == "processes.total" || field == "processes.left"
}

// maxBins bounds a histogram.
const maxBins = 24

// Describe returns the distribution of sorted values, with the quantiles at the given
// parts (0 to 1). Without values it is all zero.
func Describe(field string, sorted []float64, at ...float64) Distribution {
	d := Distribution{Field: field, Tasks: len(sorted)}
	if len(sorted) == 0 {
		return d
	}
	d.Least, d.Most = sorted[0], sorted[len(sorted)-1]
	d.Mean = stat.Mean(sorted, nil)
	if addsUp(field) {
		d.Sum = new(float64)
		for _, v := range sorted {
			*d.Sum += v
		}
	}
	d.Deviation = finite(stat.StdDev(sorted, nil))
	d.Skewness, d.Kurtosis = finite(stat.Skew(sorted, nil)), finite(stat.ExKurtosis(sorted, nil))
	for _, part := range at {
		d.Quantiles = append(d.Quantiles, Quantile{part, estimate.Quantile(sorted, part)})
	}
	d.Histogram = histogram(sorted)
	return d
}

// finite is nil for what is no number.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// histogram has bins of the same width, or of the same ratio where the greatest value is
// a hundred times the least or more. Their number is that of Sturges.
func histogram(sorted []float64) []Bin {
	least, most := sorted[0], sorted[len(sorted)-1]
	if least == most {
		return []Bin{{least, most, len(sorted)}}
	}
	n := min(maxBins, 2+int(math.Log2(float64(len(sorted)))))
	edge := func(i int) float64 { return least + (most-least)*float64(i)/float64(n) }
	if least > 0 && most/least >= 100 {
		edge = func(i int) float64 { return least * math.Pow(most/least, float64(i)/float64(n)) }
	}
	bins := make([]Bin, n)
	begin := 0
	for i := range bins {
		end := len(sorted)
		if i < n-1 {
			end = begin + sort.SearchFloat64s(sorted[begin:], edge(i+1))
		}
		bins[i] = Bin{edge(i), edge(i + 1), end - begin}
		begin = end
	}
	return bins
}
