// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// unnamed says whether a process executes a file without a name, as a controller does, and what
// was packed. The arguments of others are not read: another test's process may not answer.
func unnamed(pid int) bool {
	path, err := os.Readlink(procid.Path(pid, "exe"))
	return err == nil && strings.HasSuffix(path, " (deleted)")
}

// controllers lists the controllers of packed jobs with folders below TMPDIR.
func controllers(t *testing.T) (pids []int) {
	t.Helper()
	for _, pid := range procs.IDs() {
		if !unnamed(pid) {
			continue
		}
		line, err := os.ReadFile(procid.Path(pid, "cmdline"))
		if err == nil && bytes.HasPrefix(line, []byte("attune\x00packed\x00"+os.Getenv("TMPDIR"))) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitAlone waits until all controllers have ended, and nobody is about to become one:
// until then they execute the packed file, or have no arguments yet in the midst of an exec.
func waitAlone(t *testing.T, packed string) {
	t.Helper()
	patience.Until(t, "the end of the controller", func() bool {
		starting := slices.ContainsFunc(procs.IDs(), func(pid int) bool {
			if !unnamed(pid) {
				return procid.Executable(pid) == packed
			}
			line, _ := os.ReadFile(procid.Path(pid, "cmdline"))
			return len(line) == 0
		})
		return !starting && len(controllers(t)) == 0
	})
}

func TestOneControllerForAJob(t *testing.T) {
	emptyPlaces(t)
	const ranks = 64
	dir := t.TempDir()
	packed := mustPack(t, "/bin/bash", "--mode", "observe", "--report", filepath.Join(dir, "r.json"), "--timeline", filepath.Join(dir, "t.jsonl"))
	t.Setenv("PMIX_NAMESPACE", "job of a test")
	var started []*exec.Cmd
	for range ranks {
		cmd := exec.Command(packed, "-c", "read line")
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		started = append(started, cmd)
	}
	patience.Until(t, "all processes to be known", func() bool {
		timeline, _ := os.ReadFile(filepath.Join(dir, "t.jsonl")) // not there at first
		return !slices.ContainsFunc(started, func(cmd *exec.Cmd) bool {
			return !bytes.Contains(timeline, fmt.Appendf(nil, `"process_started","process":%d,`, cmd.Process.Pid))
		})
	})
	// One that started for nothing, because two processes saw none, goes again.
	patience.Until(t, "one controller", func() bool { return len(controllers(t)) == 1 })
	for _, cmd := range started {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)); err != nil || string(name) != "bash\n" {
			t.Errorf("name %q, %v", name, err)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	waitAlone(t, packed)
	r := readReport(t, dir)
	if r.Exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v, want SIGTERM", r.Exit)
	}
	for _, cmd := range started {
		// What the glue ran as may have been seen, too.
		others := func(p report.Process) bool { return p.PID != cmd.Process.Pid || p.ReplacedByExec }
		found := slices.DeleteFunc(slices.Clone(r.Processes), others)
		if len(found) != 1 || !found[0].Instrumented && found[0].NotInstrumented == "" {
			t.Errorf("process %d in the report is %+v, want it once, with DMLib or the reason why not", cmd.Process.Pid, found)
		}
	}
}

// TestPackedWithinPacked: what a packed program starts has its controller, also
// while that is still coming up.
func TestPackedWithinPacked(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	got := shell(t, `$RUN -c '$RUN -c "echo \$ATTUNE_JOB; exit 3"; echo $? $ATTUNE_JOB'`, packed)
	inner, outer, _ := strings.Cut(got.stdout, "\n")
	if inner == "" || outer != "3 "+inner+"\n" {
		t.Errorf("jobs and exit code of inner and outer program:\n%s%s", got.stdout, got.stderr)
	}
	patience.Until(t, "an empty folder", func() bool { return len(list()) == 0 })
}

// packedWaiting starts a packed shell with what it is to do, which reads a line, and
// waits for its controller.
func packedWaiting(t *testing.T, packed, script string) (cmd *exec.Cmd, stdin io.Closer, controller int) {
	t.Helper()
	cmd = exec.Command(packed, "-c", script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the controller", func() bool { return len(controllers(t)) == 1 })
	return cmd, stdin, controllers(t)[0]
}

// tunletOf is a process that a controller has started and that runs another file,
// so that it is past execve(2); 0: there is none.
func tunletOf(t *testing.T, controller int) int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", controller))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Stat(fmt.Sprintf("/proc/%d/exe", controller))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // it may have ended
		for _, child := range strings.Fields(string(text)) {
			runs, err := os.Stat("/proc/" + child + "/exe")
			if pid, _ := strconv.Atoi(child); err == nil && !os.SameFile(runs, own) {
				return pid
			}
		}
	}
	return 0
}

// TestControllerKeepsItsDescriptors: they are not for the tunlets that it starts.
func TestControllerKeepsItsDescriptors(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	// Until its input ends, it takes large blocks and gives them back, a quarter of its
	// time in the kernel: tunlets sleep while a program is of no interest.
	cmd, stdin, controller := packedWaiting(t, packed, `printf -v y %8000000s; until read -t 0; do x="$y"; done`)
	tunlet := 0
	patience.Until(t, "a tunlet", func() bool {
		tunlet = tunletOf(t, controller)
		return tunlet != 0
	})
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(packed)
	if err != nil {
		t.Fatal(err)
	}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", tunlet))
	if err != nil || len(descriptors) < 3 {
		t.Fatalf("descriptors %q, %v", descriptors, err)
	}
	for _, descriptor := range descriptors {
		if at, err := os.Stat(descriptor); err == nil && (os.SameFile(at, program) || os.SameFile(at, file)) {
			t.Errorf("a tunlet has the controller's descriptor %s", filepath.Base(descriptor))
		}
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it ends by itself
	patience.Until(t, "an empty folder", func() bool { return len(list()) == 0 })
}

// TestControllerDoesNotAccept: whoever comes then runs without it, and leaves the
// job's folder as it is.
func TestControllerDoesNotAccept(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	t.Setenv("PMIX_NAMESPACE", "job of a stopped controller")
	cmd, stdin, controller := packedWaiting(t, packed, "read line")
	if err := syscall.Kill(controller, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(controller, syscall.SIGCONT) })
	sockets, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "job-*", "join.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets %q, %v", sockets, err)
	}
	fillQueue(t, sockets[0])
	if got := shell(t, "exec $RUN -c 'exit 5'", packed); got.code != 5 || got.stderr != "" {
		t.Errorf("%+v, want code 5", got)
	}
	if _, err := os.Stat(sockets[0]); err != nil {
		t.Error(err)
	}
	if err := errors.Join(syscall.Kill(controller, syscall.SIGCONT), stdin.Close()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // bash reads nothing
	patience.Until(t, "an empty folder", func() bool { return len(list()) == 0 })
}

// fillQueue connects to a socket until nobody else can.
func fillQueue(t *testing.T, path string) {
	t.Helper()
	for {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		_ = unix.Close(fd) // the connection stays in the queue
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestControllerKilled: the next run cleans up, but for what the program needs as long
// as it lives: the loader of each child looks for DMLib.
func TestControllerKilled(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	said := filepath.Join(t.TempDir(), "said")
	cmd, stdin, controller := packedWaiting(t, packed, "exec 2>"+said+"; read line; /bin/echo; exit 4")
	if err := syscall.Kill(controller, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run := func() {
		t.Helper()
		if text, err := exec.Command(packed, "-c", "sleep 1").CombinedOutput(); err != nil || len(text) > 0 {
			t.Errorf("%v: %s", err, text)
		}
		waitAlone(t, packed)
	}
	run()
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	if text, err := os.ReadFile(said); err != nil || len(text) > 0 {
		t.Errorf("%v: %s", err, text)
	}
	if len(list()) == 0 {
		t.Fatal("a killed controller left nothing: this test tests nothing")
	}
	run()
	if left := list(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestChildrenOutliveTheController: what the program left running finds DMLib where its
// environment says, until it ends; the run after that cleans up.
func TestChildrenOutliveTheController(t *testing.T) {
	list := emptyPlaces(t)
	packed := mustPackBash(t)
	dir := t.TempDir()
	t.Setenv("D", dir)
	_, stdin, controller := packedWaiting(t, packed,
		`(until [ -e $D/go ]; do sleep 0.02; done; /bin/echo out; touch $D/done; until [ -e $D/end ]; do sleep 0.02; done) >$D/said 2>&1 & read line`)
	until := func(name string) {
		t.Helper()
		patience.Until(t, name, func() bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
	}
	touch := func(name string) {
		t.Helper()
		files.Write(t, filepath.Join(dir, name), "", 0o600)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the end of the controller", func() bool { return !slices.Contains(controllers(t), controller) })
	if got := shell(t, "$RUN -c 'exit 5'", packed); got.code != 5 || got.stderr != "" {
		t.Errorf("%+v, want code 5", got)
	}
	touch("go")
	until("done")
	if text, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(text) != "out\n" {
		t.Errorf("%v: %q", err, text)
	}
	touch("end")
	patience.Until(t, "a run that cleans up", func() bool {
		shell(t, "$RUN -c 'exit 5'", packed)
		waitAlone(t, packed)
		return len(list()) == 0
	})
}
