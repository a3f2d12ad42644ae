// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/internal/follow"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func mustParse(t *testing.T, text string) Spec {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// measured is what a source hands on.
type measured struct {
	values chan float64
	said   chan string
}

// start runs a source until the test ends.
func start(t *testing.T, s *Source) measured {
	t.Helper()
	m := measured{make(chan float64, 1000), make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, Sink{
			Value: func(v float64, _ time.Time) { m.values <- v },
			Say:   func(text string) { m.said <- text },
		})
	}()
	t.Cleanup(func() {
		cancel()
		patience.Closed(t, "the end of the source", ended)
		s.Close()
	})
	return m
}

func mustOpen(t *testing.T, text string, output ...Stream) *Source {
	t.Helper()
	s, err := Open(mustParse(t, text), output)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOutputIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	mustAppend(t, path, "speed 1\n") // of an earlier run
	stream := Stream{"standard output", path}
	m := start(t, mustOpen(t, `output:speed (\d+)`, stream, stream)) // 2>&1
	mustAppend(t, path, "speed 7\n")
	if got := patience.Receive(t, "a value", m.values); got != 7 {
		t.Errorf("%v, want 7", got)
	}
}

// A file that rests leaves its place to another one, and one that grows does not.
func TestManyFiles(t *testing.T) { synctest.Test(t, testManyFiles) }

func testManyFiles(t *testing.T) {
	dir := t.TempDir()
	s := New(mustParse(t, "output:x"))
	defer s.Close()
	add := func(n int) {
		t.Helper()
		file, err := os.Create(filepath.Join(dir, strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(file); (err != nil) != (n >= maxFiles) {
			t.Errorf("file %d: %v", n, err)
		}
	}
	add(0)
	add(1)
	time.Sleep(restsAfter - time.Second)
	for n := range maxFiles - 1 {
		add(n + 2)
	}
	all := slices.Clone(s.files)
	time.Sleep(time.Second)
	mustAppend(t, filepath.Join(dir, "0"), "more\n")
	s.look(time.Time{}, time.Now(), Sink{})
	add(maxFiles)
	add(maxFiles + 1)
	if len(s.files) != maxFiles || s.files[0] != all[0] || slices.Contains(s.files, all[1]) || !slices.Equal(s.files[1:maxFiles-1], all[2:]) {
		t.Errorf("%d files are followed; want all but the second, and one more", len(s.files))
	}
}

// lookAt has a source look each tenth of a second at what was appended to files before, a text
// for each, and returns what it hands on each time; -1: nothing.
func lookAt(t *testing.T, s *Source, paths []string, looks [][]string) (out []float64) {
	t.Helper()
	for _, texts := range looks {
		for i, text := range texts {
			mustAppend(t, paths[i], text)
		}
		value := -1.0
		now := lookedAt.Add(time.Duration(len(out)) * 100 * time.Millisecond)
		s.look(now.Add(-100*time.Millisecond), now, Sink{Value: func(v float64, _ time.Time) { value = math.Round(v) }, Say: func(string) {}})
		out = append(out, value)
	}
	return out
}

// lookedAt is before any file is written: what is found is of the time of the look.
var lookedAt = time.Unix(100, 0)

// twoFiles returns files that are read for an objective, and their source.
func twoFiles(t *testing.T, text string) (*Source, []string) {
	t.Helper()
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	var output []Stream
	for _, path := range paths {
		mustAppend(t, path, "")
		output = append(output, Stream{path, path})
	}
	s := mustOpen(t, text, output...)
	t.Cleanup(s.Close)
	return s, paths
}

// Running totals have nothing to do with each other: their rises are added up.
func TestRatesOfFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		looks [][]string
		want  []float64
	}{
		"together":             {[][]string{{"n=1000\n", "n=50\n"}, {"n=1010\n", "n=70\n"}, {"n=1020\n", "n=90\n"}}, []float64{-1, 300, 300}},
		"in turns":             {[][]string{{"n=1000\n"}, {"", "n=50\n"}, {"n=1020\n"}, {"", "n=70\n"}, {"n=1040\n"}}, []float64{-1, -1, 100, 200, 200}},
		"one that pauses":      {[][]string{{"n=1\n", "n=1\n"}, {"n=2\n", "n=2\n"}, {"n=3\n"}, {"n=4\n", "n=6\n"}}, []float64{-1, 20, 10, 50}},
		"one that comes":       {[][]string{{"n=1\n"}, {"n=2\n", "n=70\n"}, {"n=3\n", "n=72\n"}}, []float64{-1, 10, 30}},
		"one begins anew":      {[][]string{{"n=9\n", "n=9\n"}, {"n=10\n", "n=1\n"}, {"n=11\n", "n=3\n"}}, []float64{-1, 10, 30}},
		"anew, by itself":      {[][]string{{"n=9\n", "n=9\n"}, {"", "n=1\n"}, {"n=11\n", "n=3\n"}}, []float64{-1, -1, 20}},
		"one file and no more": {[][]string{{"n=9\n"}, {}, {"n=11\n"}, {"n=1\n"}, {"n=2\n"}}, []float64{-1, -1, 10, -1, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			s, paths := twoFiles(t, `rate output:n=(\d+)`)
			want(t, lookAt(t, s, paths, tt.looks), tt.want...)
		})
	}
}

// Of a file with too much in it the others do not suffer: none of their numbers is lost, or counted in
// a time in which it was not written.
func TestNoisyFile(t *testing.T) {
	noise := strings.Repeat("x", maxRead+1) + "\n"
	for text, tt := range map[string]struct {
		looks [][]string
		want  []float64
	}{
		`output:n=`:            {[][]string{{"n=1\n"}, {"n=1\n"}, {noise, "n=1\nn=1\n"}, {"", "n=1\n"}}, []float64{-1, 10, -1, 10}},
		`value output:n=(\d+)`: {[][]string{{"n=1\n"}, {noise, "n=2\n"}, {"n=3\n", "n=5\n"}}, []float64{1, 2, 4}},
		`rate output:n=(\d+)`:  {[][]string{{"n=1\n", "n=1\n"}, {noise, "n=2\n"}, {"n=3\n", "n=4\n"}}, []float64{-1, -1, 25}},
	} {
		t.Run(text, func(t *testing.T) {
			s, paths := twoFiles(t, text)
			want(t, lookAt(t, s, paths, tt.looks), tt.want...)
		})
	}
}

// A file that cannot be read is left, so that the others are measured.
func TestUnreadableFile(t *testing.T) {
	s, paths := twoFiles(t, `output:n=`)
	path := filepath.Join(t.TempDir(), "c")
	f, err := follow.Path(path)
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.follow(f)
	want(t, lookAt(t, s, paths, [][]string{{}, {"n=1\n"}, {"", "n=1\n"}}), -1, -1, 10)
}

func TestOutputIsNoFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	pipe := Stream{"standard output", fmt.Sprintf("/proc/self/fd/%d", w.Fd())}
	_, err = Open(mustParse(t, "output:x"), []Stream{pipe, {"standard error", "/dev/null"}})
	if err == nil || !strings.Contains(err.Error(), "standard output is a pipe, standard error is a terminal or another device") {
		t.Errorf("error %v", err)
	}
	path := filepath.Join(t.TempDir(), "log")
	mustAppend(t, path, "")
	mustOpen(t, "output:x", pipe, Stream{"standard error", path}).Close() // one of them is enough
}

func TestFileIsRefused(t *testing.T) {
	if _, err := Open(mustParse(t, "file:/etc:x"), nil); err == nil || !strings.Contains(err.Error(), "/etc is a directory") {
		t.Errorf("error %v", err)
	}
	if s := mustOpen(t, "point:f"); s != nil {
		t.Error("a point has a source")
	}
}

func TestCommandIsRun(t *testing.T) {
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	m := start(t, mustOpen(t, "every 100ms command:echo x >>"+count+"; wc -l <"+count+"; test $ATTUNE = off"))
	for want := 1.0; want <= 3; want++ {
		if got := patience.Receive(t, "a value", m.values); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// What is wrong is said once, however often it happens.
func TestCommandFails(t *testing.T) {
	tests := []struct{ name, command, want string }{
		{"a word", "echo much", `it printed "much", which is no number`},
		{"an error", "echo no such queue >&2; exit 3", "exit status 3: no such queue"},
		{"not a number", "echo NaN", "no number"},
		{"nothing", "true", `it printed "", which is no number`},
		{"less than nothing", "echo -0.5", "values that are below 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			m := start(t, mustOpen(t, "every 100ms command:echo x >>"+runs+"; "+tt.command))
			if said := patience.Receive(t, "what is wrong", m.said); !strings.Contains(said, tt.want) {
				t.Errorf("%q, want %q", said, tt.want)
			}
			patience.Until(t, "three runs", func() bool {
				text, err := os.ReadFile(runs)
				return err == nil && len(text) >= 6
			})
			if len(m.said) > 0 || len(m.values) > 0 {
				t.Errorf("%d sentences and %d values more", len(m.said), len(m.values))
			}
		})
	}
}

// What a command has started ends with it.
func TestCommandIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = ask(ctx, "sleep 900 & echo $! >"+file+"; wait", os.Environ())
	}()
	var pid string
	patience.Until(t, "the command's child", func() bool {
		text, err := os.ReadFile(file)
		pid = strings.TrimSpace(string(text))
		return err == nil && strings.HasSuffix(string(text), "\n")
	})
	cancel()
	patience.Closed(t, "the end of the command", ended)
	patience.Until(t, "the end of its child", func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || slices.Contains(strings.Fields(string(text)), "Z")
	})
}
