// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pty"
)

// job is a launcher with a counter below it, under an interactive shell.
type job struct {
	t        *testing.T
	tty      *pty.Terminal
	launcher int // process ids
	counter  int
}

// interactive starts bash -i on a terminal and types line into it.
func interactive(t *testing.T, line string) *job {
	t.Helper()
	tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Dir = t.TempDir()
	shell.Env = []string{"PATH=/usr/bin:/bin", "PS1=% ", "TERM=dumb", "RUN=" + launcher, "COUNT=" + counter}
	if err := tty.Start(shell); err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, tty: tty}
	t.Cleanup(func() {
		tty.Close()
		for _, pid := range []int{j.launcher, j.counter} {
			exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			if exe == launcher || exe == counter { // still there
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		shell.Process.Kill()
		shell.Wait()
	})
	j.expect("% ")
	j.keys(line + "\n")
	j.expect("ready ")
	shown := j.expect(".\r\n")
	ids := regexp.MustCompile(`pid=(\d+) ppid=(\d+)`).FindStringSubmatch(shown)
	if ids == nil {
		t.Fatalf("shown: %q", shown)
	}
	j.counter, _ = strconv.Atoi(ids[1])
	j.launcher, _ = strconv.Atoi(ids[2])
	return j
}

func (j *job) expect(text string) string {
	j.t.Helper()
	shown, err := j.tty.Expect(text, patience.Limit)
	if err != nil {
		j.t.Fatal(err)
	}
	return shown
}

func (j *job) keys(text string) {
	j.t.Helper()
	if err := j.tty.Type(text); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) kill(pid int, sig syscall.Signal) {
	j.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		j.t.Fatal(err)
	}
}

// once checks that the program got sig and got it once: of the signals that
// wait, the one with the highest number is passed on last.
func (j *job) once(sig syscall.Signal) {
	j.t.Helper()
	got := fmt.Sprintf("got %v.", sig)
	j.expect(got)
	j.kill(j.launcher, syscall.SIGPWR)
	if rest := j.expect("got power failure."); strings.Contains(rest, got) {
		j.t.Errorf("%v came twice: %q", sig, rest)
	}
}

func TestKeyboardSignalsArriveOnce(t *testing.T) {
	for _, tt := range []struct {
		key string
		sig syscall.Signal
	}{{"\x03", syscall.SIGINT}, {"\x1c", syscall.SIGQUIT}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			t.Parallel()
			j := interactive(t, "$RUN $COUNT; echo code=$?.")
			for range 3 { // a used witness is replaced
				j.keys(tt.key)
				j.once(tt.sig)
			}
			j.kill(j.launcher, syscall.SIGUSR2)
			j.expect("code=7.")
		})
	}
}

// The launcher's own processes show by what they are, and not as the exe that they were
// executed as.
func TestNamesOfOwnProcesses(t *testing.T) {
	j := interactive(t, "$RUN $COUNT")
	names := func() (names []string) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", j.launcher))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			for _, pid := range strings.Fields(string(text)) {
				name, _ := os.ReadFile("/proc/" + pid + "/comm")
				names = append(names, strings.TrimSpace(string(name)))
			}
		}
		slices.Sort(names)
		return names
	}
	program := filepath.Base(counter)
	patience.Until(t, "the witness", func() bool { return slices.Equal(names(), []string{inherit.WitnessArg, program}) })
	j.kill(j.counter, syscall.SIGSTOP)
	patience.Until(t, "the waker", func() bool { return slices.Contains(names(), wakerArg) })
}

func TestSignalsForTheLauncherReachTheProgram(t *testing.T) {
	j := interactive(t, "$RUN $COUNT; echo code=$?.")
	for _, sig := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGWINCH, syscall.SIGCONT,
	} {
		j.kill(j.launcher, sig)
		j.once(sig)
	}
	j.kill(j.launcher, syscall.SIGUSR2)
	j.expect("code=7.")
}

func TestSignalsForTheGroupArriveOnce(t *testing.T) {
	j := interactive(t, "$RUN $COUNT; echo code=$?.")
	group, err := syscall.Getpgid(j.launcher)
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		j.kill(-group, sig)
		j.once(sig)
	}
	j.kill(-group, syscall.SIGUSR2)
	j.expect("code=7.")
}

func TestStopAndForeground(t *testing.T) {
	j := interactive(t, "$RUN $COUNT")
	for range 2 {
		j.keys("\x1a")
		j.expect("Stopped")
		j.expect("% ")
		for _, pid := range []int{j.launcher, j.counter} {
			if !stopped(pid) {
				t.Errorf("process %d is in state %c", pid, state(pid))
			}
		}
		j.keys("fg\n")
		j.once(syscall.SIGCONT)
	}
	j.keys("\x1a")
	j.expect("Stopped")
	j.keys("bg; kill -USR2 %1; wait %1; echo code=$?.\n")
	j.expect("code=7.")
}

func TestStopOfTheProgramAlone(t *testing.T) {
	j := interactive(t, "set -b; $RUN $COUNT &")
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP} {
		j.kill(j.counter, sig)
		j.expectState(j.launcher, 'T')
		// Nobody continues the launcher: it must notice by itself.
		j.kill(j.counter, syscall.SIGCONT)
		j.once(syscall.SIGCONT)
	}
	j.kill(j.counter, syscall.SIGSTOP)
	j.expectState(j.launcher, 'T')
	j.kill(j.counter, syscall.SIGKILL)
	j.expect("Killed")
}

func TestContinueOfTheLauncherAlone(t *testing.T) {
	j := interactive(t, "set -b; $RUN $COUNT &")
	j.kill(j.launcher, syscall.SIGTSTP)
	j.expectState(j.counter, 'T')
	j.expectState(j.launcher, 'T')
	j.kill(j.launcher, syscall.SIGCONT)
	j.once(syscall.SIGCONT)
}

// expectState waits for a change that nothing announces.
func (j *job) expectState(pid int, want byte) {
	j.t.Helper()
	patience.Until(j.t, fmt.Sprintf("state %c of process %d", want, pid), func() bool { return state(pid) == want })
}

func TestWithoutTerminal(t *testing.T) {
	got := observe(t, `exec 3< <(exec setsid nohup $RUN `+counter+` 2>&1 </dev/null); read -r -u3 a pid ppid
		ppid=${ppid#ppid=}; ppid=${ppid%.}
		kill -INT $ppid; read -r -u3 line; echo $line
		kill -HUP $ppid; read -r -u3 line; echo $line
		kill -USR2 $ppid; read -r -u3 line; echo $line`, launcher)
	if want := "got interrupt.\ngot hangup.\ngot user defined signal 2.\n"; got.stdout != want {
		t.Errorf("%+v, want stdout %q", got, want)
	}
}

func TestOwnDeathLeavesTheProgramAlone(t *testing.T) {
	j := interactive(t, "$RUN $COUNT")
	j.kill(j.launcher, syscall.SIGKILL)
	j.expect("Killed")
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", j.counter)); err != nil {
		t.Fatal("the program is gone: ", err)
	}
	j.kill(j.counter, syscall.SIGUSR2)
	j.expect("got user defined signal 2.")
}
