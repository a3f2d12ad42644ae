// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/targets"
)

// hard is testdata/hard.c as it runs.
type hard struct {
	pid    int
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// hardStatus is what it exits with if all went right.
const hardStatus = 7

// startHard runs a command that ends up as the program, whose output it has.
func startHard(t *testing.T, cmd *exec.Cmd) *hard {
	t.Helper()
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	h := &hard{pid: cmd.Process.Pid, cmd: cmd, stdin: stdin, stdout: bufio.NewReader(stdout)}
	h.hears(t, "ready")
	return h
}

// hears expects a line of the program.
func (h *hard) hears(t *testing.T, want string) {
	t.Helper()
	line, err := h.stdout.ReadString('\n')
	if got := strings.TrimSuffix(line, "\n"); err != nil || got != want {
		t.Fatalf("the program says %q, %v; want %q", got, err, want)
	}
}

func (h *hard) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(h.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// isRight asks the program whether all has gone as it should.
func (h *hard) isRight(t *testing.T) {
	t.Helper()
	h.say(t, "check")
	h.hears(t, "right")
}

// ends sees the program to its end, which must be its own.
func (h *hard) ends(t *testing.T) {
	t.Helper()
	h.say(t, "end")
	h.hasEnded(t)
}

func (h *hard) hasEnded(t *testing.T) {
	t.Helper()
	h.hears(t, "end")
	if _ = h.cmd.Wait(); h.cmd.ProcessState.ExitCode() != hardStatus {
		t.Errorf("the program ended with %v, want status %d", h.cmd.ProcessState, hardStatus)
	}
}

func buildHard(t *testing.T) string {
	t.Helper()
	return targets.Build(t, "testdata/hard.c")
}

// enterAndLeave is one whole visit.
func (b *bench) enterAndLeave(t *testing.T, pid int) {
	t.Helper()
	result := b.inject(t, pid)
	GiveBack(t.Context(), result.Memory, nil)
	free(t, result)
}

func TestHardPrograms(t *testing.T) {
	program := buildHard(t)
	for what, row := range map[string]struct {
		visits int
		among  bool // only threads beside the main one, which waits in read
	}{
		"many":    {3, true},
		"churn":   {20, true},
		"alarms":  {20, true},
		"handler": {5, true},
		"small":   {10, true},
		"dlopen":  {10, true},
		"vfork":   {10, true},
		"watch":   {10, false},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t)
			h := startHard(t, exec.Command(program, what))
			if row.among {
				b.options.among = func(tid int) bool { return tid != h.pid }
			}
			b.options.Patience = 20 * time.Second // the machine may be busy
			for range row.visits {
				b.enterAndLeave(t, h.pid)
				h.isRight(t)
			}
			h.ends(t)
		})
	}
}

// TestEndWhileEntering: the program ends somewhere in the middle.
func TestEndWhileEntering(t *testing.T) {
	program := buildHard(t)
	b := newBench(t)
	for i := range 20 {
		h := startHard(t, exec.Command(program, "plain"))
		process := mustOpen(t, h.pid)
		go func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			_, _ = io.WriteString(h.stdin, "end\n")
		}()
		for {
			result, err := Inject(t.Context(), process, b.options)
			if err == nil {
				free(t, result)
				continue
			}
			if !errors.Is(err, ErrInterrupted) && !errors.Is(err, procid.ErrGone) && !errors.Is(err, ErrUnsuited) {
				t.Errorf("entering a program that ends: %v", err)
			}
			break
		}
		h.hasEnded(t)
	}
}

// TestExecWhileEntering: the program becomes another one in the middle.
func TestExecWhileEntering(t *testing.T) {
	program := buildHard(t)
	b := newBench(t)
	h := startHard(t, exec.Command(program, "plain"))
	process := mustOpen(t, h.pid)
	for i := range 6 {
		become := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			_, err := io.WriteString(h.stdin, "exec\n")
			become <- err
		}()
		for range 3 {
			result, err := Inject(t.Context(), process, b.options)
			if err == nil {
				free(t, result)
			} else if errors.Is(err, ErrTimeout) || errors.Is(err, procid.ErrGone) {
				t.Fatalf("entering a program that executes another: %v", err)
			}
		}
		if err := <-become; err != nil {
			t.Fatal(err)
		}
		h.hears(t, "ready")
		h.isRight(t)
	}
	h.ends(t)
}

// TestStopWhileEntering: the program is stopped and continued by others.
func TestStopWhileEntering(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "plain"))
	process := mustOpen(t, h.pid)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_ = unix.Kill(h.pid, unix.SIGSTOP)
			time.Sleep(3 * time.Millisecond)
			_ = unix.Kill(h.pid, unix.SIGCONT)
			select {
			case <-over:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	entered := 0
	for until := time.Now().Add(time.Minute); entered < 5 && time.Now().Before(until); {
		result, err := Inject(t.Context(), process, b.options)
		if err == nil {
			entered++
			free(t, result)
		} else if !errors.Is(err, ErrUnsuited) {
			t.Fatal(err)
		}
	}
	close(over)
	<-ended
	if entered == 0 {
		t.Error("never entered between two stops")
	}
	h.isRight(t)
	h.ends(t)
}

// TestOtherTracer: a debugger has the program.
func TestOtherTracer(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "plain"))
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // ends with the goroutine, and tracing with it
		other := &tracee{tid: h.pid}
		if err := other.seize(); err != nil {
			done <- err
			return
		}
		_, err := Inject(t.Context(), mustOpen(t, h.pid), b.options)
		done <- err
	}()
	err := <-done
	if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())+" traces it") {
		t.Errorf("error %v, want one that names the tracer", err)
	}
	h.isRight(t)
	h.ends(t)
}

// TestVforkChild: it must not be entered, its memory is its parent's.
func TestVforkChild(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "slow-vfork"))
	var child int
	for child == 0 {
		for _, tid := range tasks(t, h.pid) {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", h.pid, tid))
			if err != nil {
				t.Skip("the kernel does not tell of children:", err)
			}
			if fields := strings.Fields(string(content)); len(fields) > 0 {
				child, _ = strconv.Atoi(fields[0])
			}
		}
	}
	if _, err := Inject(t.Context(), mustOpen(t, child), b.options); !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "vfork") {
		t.Errorf("error %v, want a refusal for vfork", err)
	}
	h.isRight(t)
	h.ends(t)
}

func tasks(t *testing.T, pid int) (tids []int) {
	t.Helper()
	tids, err := candidates(pid)
	if err != nil {
		t.Fatal(err)
	}
	return tids
}

// TestDeletedProgram: the file is gone, the program runs.
func TestDeletedProgram(t *testing.T) {
	b := newBench(t)
	program := buildHard(t)
	h := startHard(t, exec.Command(program, "plain"))
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	b.enterAndLeave(t, h.pid)
	h.isRight(t)
	h.ends(t)
}

// buildPart makes a library that calls malloc.
func buildPart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "part.c"), filepath.Join(dir, "libpart.so")
	text := "#include <stdlib.h>\nvoid *part(void) { return malloc(10); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return library
}

func imageOf(t *testing.T, pid int, name string) objfile.Image {
	t.Helper()
	images, err := objfile.Images(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if image.Matches(name) {
			return image
		}
	}
	t.Fatalf("%s is not mapped", name)
	return objfile.Image{}
}

// TestObjectsLoadedLater: their calls go through the hooks too, and are given
// back.
func TestObjectsLoadedLater(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "churn")) // comes to hooks
	result := b.inject(t, h.pid)
	defer free(t, result)
	h.say(t, "load "+buildPart(t))
	h.hears(t, "right")
	images, err := objfile.Images(h.pid)
	if err != nil {
		t.Fatal(err)
	}
	led, err := Extend(t.Context(), result.Memory, images, result.Slots)
	if err != nil || len(led) != 1 {
		t.Fatalf("led %v to hooks, %v; want the library's malloc", led, err)
	}
	part := imageOf(t, h.pid, "libpart.so")
	if s := led[0]; s.Address < part.Start || s.Address >= part.End || slotOf(t, h.pid, s) != s.Hook {
		t.Errorf("slot %+v holds %#x", s, slotOf(t, h.pid, s))
	}
	if again, err := Extend(t.Context(), result.Memory, images, append(led, result.Slots...)); err != nil || len(again) != 0 {
		t.Errorf("led %v to hooks again, %v", again, err)
	}
	if stayed := GiveBack(t.Context(), result.Memory, led); len(stayed) != 0 || slotOf(t, h.pid, led[0]) != led[0].Old {
		t.Errorf("given back, the slot holds %#x, want %#x (%v)", slotOf(t, h.pid, led[0]), led[0].Old, stayed)
	}
	h.isRight(t)
	h.ends(t)
}

func slotOf(t *testing.T, pid int, s Slot) uint64 {
	t.Helper()
	var word [8]byte
	if err := procmem.Read(pid, s.Address, word[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(word[:])
}

// TestTwoControllers: one has the process, the other is told so; and when it
// has let go, or died, the other gets in.
func TestTwoControllers(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "plain"))
	result := b.inject(t, h.pid)
	_, err := Inject(t.Context(), mustOpen(t, h.pid), b.options)
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("error %v, want one that names the controller", err)
	}
	dead := exec.Command("/bin/true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	owner := thisOwner(t)
	owner.PID = dead.Process.Pid
	result.Memory.SetOwner(owner)
	second := b.inject(t, h.pid) // the first has died, and let go of nothing
	free(t, second)
	free(t, b.inject(t, h.pid)) // the second has let go
	free(t, result)
	h.isRight(t)
	h.ends(t)
}

// TestAtTheSameTime: of those that come at once one gets in, and nobody harm.
func TestAtTheSameTime(t *testing.T) {
	b := newBench(t)
	h := startHard(t, exec.Command(buildHard(t), "churn"))
	const visitors = 4
	type visit struct {
		result Result
		err    error
	}
	visits := make(chan visit)
	for range visitors {
		process := mustOpen(t, h.pid)
		go func() {
			result, err := Inject(t.Context(), process, b.options)
			visits <- visit{result, err}
		}()
	}
	var in []Result
	for range visitors {
		switch v := <-visits; {
		case v.err == nil:
			in = append(in, v.result)
		case !errors.Is(v.err, ErrHeld):
			t.Error(v.err)
		}
	}
	if len(in) != 1 {
		t.Fatalf("%d controllers have the process, want 1", len(in))
	}
	free(t, in[0])
	h.isRight(t)
	h.ends(t)
}

// TestLimitOnThreads: where none can be started the borrowed one does it all.
func TestLimitOnThreads(t *testing.T) {
	b := newBench(t)
	program := buildHard(t)
	// Address space for no more stacks: pthread_create answers EAGAIN.
	h := startHard(t, exec.Command(program, "plain"))
	size := virtualBytes(t, h.pid) + 16<<20
	if err := unix.Prlimit(h.pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: size, Max: size}, nil); err != nil {
		t.Fatal(err)
	}
	result, err := Inject(t.Context(), mustOpen(t, h.pid), b.options)
	if err != nil {
		t.Fatal(err) // the memory that is shared was made smaller
	}
	free(t, result)
	h.isRight(t)
	h.ends(t)
}

func virtualBytes(t *testing.T, pid int) uint64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseUint(strings.Fields(string(content))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * pageBytes
}

// TestOneThread: a program that never had a second one does not get one.
func TestOneThread(t *testing.T) {
	b := newBench(t)
	cmd := exec.Command("/bin/cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if cmd.Stdout, err = os.Create(out); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	const text = "as it was\n"
	if _, err := io.WriteString(stdin, text); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		result := retry(t, func() (Result, error) { return Inject(t.Context(), mustOpen(t, cmd.Process.Pid), b.options) })
		if result.Helper != 0 {
			t.Errorf("thread %d was started in a program of one", result.Helper)
		}
		free(t, result)
		if _, err := io.WriteString(stdin, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != strings.Repeat(text, 6) {
		t.Errorf("copied %q, %v", got, err)
	}
}

// retry is for a program that may not have come to its main yet.
func retry(t *testing.T, enter func() (Result, error)) Result {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; {
		result, err := enter()
		if err == nil {
			return result
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}
