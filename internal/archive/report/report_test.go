// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/testing/safepage"
)

var epoch = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// mustReport makes a report of tasks of a program whose name is an attack: 100 of which
// one is unlike the others and two failed, and some of many other programs.
func mustReport(t *testing.T, others int) *Report {
	t.Helper()
	s, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), "archive.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var tasks []*archive.Task
	add := func(name string, n int, memory uint64, code int) {
		start := epoch.Add(time.Duration(n) * time.Minute)
		tasks = append(tasks, &archive.Task{
			Schema: archive.SchemaID, Name: name, Source: "attune", Asked: archive.Asked{MemoryBytes: 4e9, Cores: 2},
			Account: account.Account{
				Schema: account.SchemaID, Start: start, End: start.Add(time.Minute), WallSeconds: 60 + float64(n%7), CPUSeconds: new(60.0), CoresAverage: new(1.0),
				Memory: account.Memory{Resident: &memory}, Exit: account.Exit{Type: account.ExitNormal, Code: &code},
			},
		})
	}
	for n := range 100 {
		memory, code := uint64(1e9+n%10*1e6), 0
		if n == 50 {
			memory = 3e9
		}
		if n%50 == 49 {
			code = 1
		}
		add(attack, n, memory, code)
	}
	for n := range others {
		add(fmt.Sprint("other", n), n, 1e9, 0)
	}
	if _, err := s.Add(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	r, err := Make(t.Context(), s, archive.Filter{}, epoch.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const attack = "<script>alert(1)</script>\x1b[2J'\"&"

func TestText(t *testing.T) {
	r := mustReport(t, 30)
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"130 tasks in 31 categories, 2 failed", "next time ask for ", "unlike the others", "memory 3 GB where the median is 1 GB",
		"% used of what was asked for", "GBh in vain", "11 more categories", "SKEWNESS", "▁",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is not in\n%s", text, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name moves the cursor")
	}
}

// TestPage: the page is whole, fetches and runs nothing, and shows what others chose as
// text.
func TestPage(t *testing.T) {
	r := mustReport(t, 30)
	var out bytes.Buffer
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	safepage.Check(t, out.Bytes())
	for _, text := range []string{
		"&lt;script&gt;alert(1)", "Next time ask for ", "Skewness", "<svg", `class="failed"`, `class="asked"`, "aria-label=", "attune archive estimate",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is not in the page", text)
		}
	}
	if len(page) > 3e6 {
		t.Errorf("%d bytes", len(page))
	}
}

func TestNothing(t *testing.T) {
	r := &Report{Made: epoch}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil || !strings.Contains(page.String(), "attune archive import") {
		t.Errorf("%v: %s", err, page.String())
	}
}

// No peak is hidden in a time line, however many tasks there are, and none is beside the picture.
func TestTimeLine(t *testing.T) {
	for _, tasks := range []int{1, 2, 100, maxPoints, maxPoints + 1, 10_000} {
		var samples []sample
		for n := range tasks {
			samples = append(samples, sample{id: fmt.Sprint(n), end: epoch.Add(-time.Duration(n) * time.Second), value: float64(n * n % 7)})
		}
		samples[tasks/2].value = 100
		f := newFold(archive.Category{})
		f.values[0] = samples
		chart := f.section().Charts[0]
		points := chart.Over
		if len(points) > maxPoints || len(points) == 0 {
			t.Errorf("%d points of %d tasks", len(points), tasks)
		}
		if !slices.ContainsFunc(points, func(p Point) bool { return p.Value == 100 }) {
			t.Errorf("the peak of %d tasks is not there", tasks)
		}
		if !slices.IsSortedFunc(points, func(a, b Point) int { return a.End.Compare(b.End) }) {
			t.Errorf("%d tasks: points are out of order", tasks)
		}
		if line := drawLine(chart); line != nil && (!line.From.Equal(samples[tasks-1].end) || !line.To.Equal(epoch)) {
			t.Errorf("%d tasks: the picture is from %v to %v", tasks, line.From, line.To)
		}
	}
}
