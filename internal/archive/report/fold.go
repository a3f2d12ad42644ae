// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/archive"
)

// fold takes the tasks of a category, the latest first, and keeps their numbers only.
type fold struct {
	category archive.Category
	cpu      float64
	values   [][]sample // by field
	asked    []float64  // by field, of the latest task that has it
	uses     []Use
}

// sample is a task in one field.
type sample struct {
	id     string
	end    time.Time
	value  float64
	failed bool
}

func newFold(c archive.Category) *fold {
	return &fold{
		category: c, values: make([][]sample, len(fields)), asked: make([]float64, len(fields)),
		uses: []Use{{Name: "memory"}, {Name: "cores"}, {Name: "time"}, {Name: "disk"}},
	}
}

func (f *fold) add(t *archive.Summary) {
	f.cpu += t.Numbers["cpu_seconds"]
	for i, field := range fields {
		if v, known := value(t, field.name); known {
			f.values[i] = append(f.values[i], sample{t.ID, t.End, v, !t.Succeeded()})
		}
		if f.asked[i] == 0 {
			f.asked[i] = t.Numbers[field.asked]
		}
	}
	wall := t.Numbers["wall_seconds"]
	memory, _ := t.Memory()
	for i, u := range []struct{ asked, used float64 }{
		{t.Numbers["asked.memory_bytes"] * wall, memory * wall},
		{t.Numbers["asked.cores"] * wall, t.Numbers["cpu_seconds"]},
		{t.Numbers["asked.wall_seconds"], wall},
		{t.Numbers["asked.disk_bytes"] * wall, t.Numbers["disk.bytes_peak"] * wall},
	} {
		if u.asked > 0 && u.used > 0 {
			f.uses[i].Asked += u.asked
			f.uses[i].Used += u.used
			f.uses[i].Tasks++
		}
	}
}

func (f *fold) section() *Section {
	s := &Section{Category: f.category, CPU: f.cpu}
	for _, u := range f.uses {
		if u.Tasks > 0 {
			s.Asked = append(s.Asked, u)
		}
	}
	for i, field := range fields {
		samples := f.values[i]
		if len(samples) == 0 {
			continue
		}
		sorted := make([]float64, len(samples))
		for i, v := range samples {
			sorted[i] = v.value
		}
		slices.Sort(sorted)
		chart := Chart{Distribution: archive.Describe(field.name, sorted, 0.05, 0.25, 0.5, 0.75, 0.95), Title: field.title, Over: timeLine(samples), Asked: f.asked[i]}
		chart.From, chart.To = samples[len(samples)-1].end, samples[0].end
		s.Charts = append(s.Charts, chart)
		if field.outliers {
			s.Outliers = append(s.Outliers, outliers(chart, samples)...)
		}
	}
	return s
}

// timeLine returns the samples in the order of their ends, maxPoints at most.
func timeLine(samples []sample) (points []Point) {
	in := slices.Clone(samples)
	slices.Reverse(in)
	step := max(1, (2*len(in)+maxPoints-1)/maxPoints)
	if step == 1 || len(in) <= maxPoints {
		step = 1
	}
	for part := range slices.Chunk(in, step) {
		least := slices.MinFunc(part, func(a, b sample) int { return cmp.Compare(a.value, b.value) })
		most := slices.MaxFunc(part, func(a, b sample) int { return cmp.Compare(a.value, b.value) })
		first, second := least, most
		if most.end.Before(least.end) {
			first, second = most, least
		}
		points = append(points, Point{first.end, first.value, first.failed})
		if first.id != second.id {
			points = append(points, Point{second.end, second.value, second.failed})
		}
	}
	return points
}

// outliers are the tasks beyond Tukey's outer fences, three times the range of the middle
// half away from it, and at least a tenth off the median, the farthest first.
func outliers(c Chart, samples []sample) (out []Outlier) {
	lower, median, upper := c.Quantiles[1].Value, c.Quantiles[2].Value, c.Quantiles[3].Value
	fence := 3 * (upper - lower)
	if len(samples) < 8 || fence == 0 {
		return nil
	}
	for _, s := range samples {
		beyond := s.value > upper+fence || s.value < lower-fence
		if beyond && max(s.value-median, median-s.value) >= median/10 {
			out = append(out, Outlier{s.id, c.Field, c.Title, s.value, median, s.end})
		}
	}
	slices.SortStableFunc(out, func(a, b Outlier) int { return cmp.Compare(distance(b), distance(a)) })
	return out[:min(len(out), maxOutliers)]
}

func distance(o Outlier) float64 { return max(o.Value-o.Median, o.Median-o.Value) }
