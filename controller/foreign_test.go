// SPDX-License-Identifier: Apache-2.0

//go:build privileged && full

package controller

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pointtext"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// foreign is a program that nobody here wrote, or a run-time system under a program
// that does what is hard for whoever comes in.
type foreign struct {
	name    string
	command func(t *testing.T) []string
	// varies is what of the output is not the same in each run.
	varies *regexp.Regexp
	// refuses is why DMLib cannot be brought in later; empty: it can.
	refuses string
}

// withAllocators are programs with an allocator between them and the C library's, which
// must not get each other's blocks.
func withAllocators() (rows []foreign) {
	for _, name := range []string{"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"} {
		script := `LD_PRELOAD="$LD_PRELOAD:` + name + `" exec /usr/bin/python3 testdata/foreign/blocks.py`
		rows = append(rows, foreign{name: name, command: line("sh", "-c", script)})
	}
	for _, sanitizer := range []string{"address", "thread"} {
		row := foreign{name: sanitizer + " sanitizer", command: func(t *testing.T) []string {
			return []string{targets.Build(t, "testdata/foreign/sanitized.c", "-fsanitize="+sanitizer)}
		}}
		if sanitizer == "thread" {
			row.refuses = "ThreadSanitizer"
		}
		rows = append(rows, row)
	}
	return rows
}

func line(words ...string) func(*testing.T) []string {
	return func(*testing.T) []string { return words }
}

// result is how a program ended, and what it wrote.
type result struct{ Output, End string }

func TestForeignPrograms(t *testing.T)   { comeAndGoIn(t, foreigners()) }
func TestForeignRuntimes(t *testing.T)   { comeAndGoIn(t, runtimes()) }
func TestForeignAllocators(t *testing.T) { comeAndGoIn(t, withAllocators()) }

// comeAndGoIn: each program writes and ends with Attune inside, from its start
// or attached to while it runs, as it does without, while points of all mechanisms come and
// go.
func comeAndGoIn(t *testing.T, rows []foreign) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			words := row.command(t)
			begin := time.Now()
			want := row.run(t, words, nil, func(int) {})
			took := time.Since(begin)
			for _, way := range []string{"launch", "attach"} {
				t.Run(way, func(t *testing.T) {
					// On a busy machine a program may end before anything is in place.
					for try := range foreignTries {
						after := took / 4 >> try // in the midst of its work
						if placed := row.compare(t, way, words, want, after); len(placed) > 0 || t.Failed() {
							return
						}
					}
					t.Error("no point was in place: this test tests nothing")
				})
			}
		})
	}
}

const foreignTries = 5

// compare runs a program with Attune inside, and returns how many points were in place, by
// mechanism.
func (f foreign) compare(t *testing.T, way string, words []string, want result, after time.Duration) map[string]int {
	t.Helper()
	b := start(t, func(c *Config) { c.UseBPF = true })
	points := b.comeAndGo(t)
	var env []string
	running := func(pid int) {
		time.Sleep(after)
		f.attach(t, b, pid)
	}
	if way == "launch" {
		env, running = b.controller.Environment(), func(int) {}
	}
	got := f.run(t, words, env, running)
	points.stop()
	b.stop(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alone -, with Attune +:\n%s", diff)
	}
	t.Logf("%d rounds of points; in place: %v", points.rounds, points.placed)
	return points.placed
}

// attach brings DMLib into a program that runs, or is told why not, unless the program has
// ended.
func (f foreign) attach(t *testing.T, b *bench, pid int) {
	t.Helper()
	attached, err := b.controller.Attach(t.Context(), pid)
	_, gone := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	switch {
	case gone != nil:
	case err != nil:
		t.Error(err)
	case f.refuses == "" && attached.NotInjected != nil, f.refuses != "" && !strings.Contains(fmt.Sprint(attached.NotInjected), f.refuses):
		t.Errorf("DMLib is not in the process: %v, want %q", attached.NotInjected, f.refuses)
	}
}

// run runs a program to its end. It is the child of a shell: who waits for a process
// that it traces is told of each stop.
func (f foreign) run(t *testing.T, words, env []string, running func(pid int)) result {
	t.Helper()
	var out bytes.Buffer
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }() // read only
	cmd := exec.Command("sh", slices.Concat([]string{"-c", `"$@" 3>&- & echo $! >&3; exec 3>&-; wait $!`, "sh", "env"}, env, words)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{write}
	err = cmd.Start()
	_ = write.Close() // the child has it
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(read, &pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	running(pid)
	select {
	case err = <-ended:
	case <-time.After(patience.Limit):
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		t.Fatalf("it goes on for ever; so far it said %s", &out)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text := out.String()
	if f.varies != nil {
		text = f.varies.ReplaceAllString(text, "")
	}
	return result{Output: text, End: cmd.ProcessState.String()}
}

// churning are points that come and go.
type churning struct {
	halt, done chan struct{}
	rounds     int
	placed     map[string]int // by mechanism
}

func (c *churning) stop() {
	close(c.halt)
	<-c.done
}

// comeAndGo adds points and takes them out again, all the while.
func (b *bench) comeAndGo(t *testing.T) *churning {
	t.Helper()
	b.sampleEvery(t, 20*time.Millisecond)
	points := ofAllKinds(t)
	c := &churning{halt: make(chan struct{}), done: make(chan struct{}), placed: make(map[string]int)}
	go func() {
		defer close(c.done)
		for first := uint32(1); ; first += 100 {
			if !b.roundOf(c, points, first) {
				return
			}
		}
	}()
	return c
}

// roundOf is one round; false: it is to halt.
func (b *bench) roundOf(c *churning, points []*attunev1.MeasurePoint, first uint32) bool {
	var indexes []uint32
	for i, p := range points {
		index := first + uint32(i)
		indexes = append(indexes, index)
		b.want.Points = append(b.want.Points, &attunev1.PointWant{Index: index, Point: p})
	}
	b.requests <- b.wanting()
	answered := make(map[uint32]bool)
	// A process is there, or not; one that is may come by a safe point seldom.
	for limit := time.After(2 * time.Second); len(answered) < len(points); {
		select {
		case <-b.events:
			continue
		case m := <-b.answers:
			if s := m.GetPoint(); s.GetPoint() >= first {
				if len(answered) == 0 {
					limit = time.After(300 * time.Millisecond)
				}
				answered[s.GetPoint()] = true
				if s.GetState() == attunev1.PointState_POINT_STATE_PLACED {
					c.placed[s.GetMechanism()]++
				}
			}
			continue
		case <-limit:
		case <-c.halt:
		}
		break
	}
	b.requests <- b.removing(indexes...)
	c.rounds++
	select {
	case <-c.halt:
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}

// ofAllKinds are more than twenty points: hooks, slots of the GOT, whole functions with
// their returns, static probes, and keys that only the kernel's probes take, some of them
// where patches have to give way.
func ofAllKinds(t *testing.T) []*attunev1.MeasurePoint {
	t.Helper()
	var points []*attunev1.MeasurePoint
	for _, hook := range strings.Fields("malloc free realloc pthread_mutex_lock pthread_mutex_unlock read write") {
		points = append(points, &attunev1.MeasurePoint{Id: hook, Target: &attunev1.MeasurePoint_Hook{Hook: hook}})
	}
	for _, name := range strings.Fields("memcpy clock_gettime getenv") {
		points = append(points, call(name, true))
	}
	for _, name := range strings.Fields("malloc free") { // also where another allocator has these names
		p := call(name, true)
		p.GetFunction().Object = "libc.so.6"
		points = append(points, p)
	}
	for _, name := range strings.Fields("mmap munmap madvise sigaction qsort") {
		p := call(name, false)
		p.GetFunction().Object = "libc.so.6"
		p.Place = attunev1.Place_PLACE_BOTH
		points = append(points, p)
	}
	for _, name := range strings.Fields("setjmp memory_sbrk_more lll_lock_wait_private") {
		points = append(points, &attunev1.MeasurePoint{Id: name, Target: &attunev1.MeasurePoint_Usdt{
			Usdt: &attunev1.UsdtTarget{Object: "libc.so.6", Provider: "libc", Name: name},
		}})
	}
	for i, text := range []string{"getenv by arg0:str", "open64 by arg0:str", "mmap by stack", "malloc sum arg0 by stack", "munmap%time by stack"} {
		p, err := pointtext.Parse("libc.so.6:" + text)
		if err != nil {
			t.Fatal(err)
		}
		p.Spec.Id = fmt.Sprint("key", i)
		points = append(points, p.Spec)
	}
	return points
}
