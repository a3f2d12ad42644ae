// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recorder is a Handler that passes on what it is told.
type recorder struct {
	found      chan Found
	mismatches chan *attunev1.Mismatch
	refuse     bool
}

func newRecorder() *recorder {
	return &recorder{found: make(chan Found, 8192), mismatches: make(chan *attunev1.Mismatch, 8192)}
}

func (r *recorder) Found(f Found) bool {
	r.found <- f
	return !r.refuse
}

func (r *recorder) Mismatch(m *attunev1.Mismatch) { r.mismatches <- m }

// running is a Watcher under test.
type running struct {
	*Watcher
	*recorder
	stop func()
}

func mustRun(t *testing.T, options Options, prepare ...func(*recorder)) *running {
	t.Helper()
	r := &running{recorder: newRecorder()}
	for _, f := range prepare {
		f(r.recorder)
	}
	options.Handler = r.recorder
	if options.PollInterval == 0 {
		options.PollInterval = 10 * time.Millisecond
	}
	var err error
	if r.Watcher, err = New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		r.drain()
	}
	t.Cleanup(r.stop)
	return r
}

// drain closes and returns what was found and not taken from the channel.
func (r *recorder) drain() (rest []Found) {
	for {
		select {
		case f := <-r.found:
			if f.Held != nil {
				_ = f.Held.Close()
			}
			rest = append(rest, f)
		default:
			return rest
		}
	}
}

// mustFind returns the next process found.
func (r *running) mustFind(t *testing.T) Found {
	t.Helper()
	f := patience.Receive(t, "process that is looked for", r.found)
	t.Cleanup(func() {
		if f.Held != nil {
			_ = f.Held.Close()
		}
	})
	return f
}

// mustEventually waits until something holds.
func (r *running) mustEventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	patience.Until(t, what, holds)
}

func site(id, executable string) *attunev1.Registration {
	return &attunev1.Registration{
		Id: id, Executable: executable, Owner: &attunev1.Principal{Name: "site", Role: attunev1.Role_ROLE_NODE},
	}
}

// mustProgram makes a copy of sleep with a name of its own.
func mustProgram(t *testing.T, name string) string {
	t.Helper()
	data := files.Read(t, "/bin/sleep")
	path := filepath.Join(t.TempDir(), name)
	files.Write(t, path, data, 0o755)
	return path
}

// mustStart starts a command that ends with the test, with all that it forks,
// and returns its pid.
func mustStart(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Setpgid = true
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group := -command.Process.Pid
		_ = syscall.Kill(group, syscall.SIGKILL)
		_ = command.Wait() // killed
		// What it has started ends a moment later, and is not to be found meanwhile.
		// It has become a child of this process (TestMain).
		for err := error(nil); err == nil || errors.Is(err, syscall.EINTR); {
			_, err = syscall.Wait4(group, nil, 0, nil)
		}
	})
	return command.Process.Pid
}

// modes are those that this user has on this machine.
func modes() []string {
	for _, way := range waysOf("", 0)[:3] {
		if s, err := way.open(); err == nil {
			_ = s.close()
			return []string{ModeWatch, ModePoll}
		}
	}
	return []string{ModePoll}
}

func TestFindsWhoRunsAndWhoComes(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			path := mustProgram(t, "attune-t-solver")
			before := mustStart(t, exec.Command(path, "1000"))
			r := mustRun(t, Options{Prefer: mode})
			r.SetRegistrations([]*attunev1.Registration{site("r1", "attune-t-solver")})
			if f := r.mustFind(t); int(f.Process.GetIdentity().GetPid()) != before || f.Registration.GetId() != "r1" || f.Process.GetExecutable() != path {
				t.Errorf("found %v, want process %d", f, before)
			}
			after := mustStart(t, exec.Command(path, "1000"))
			if f := r.mustFind(t); int(f.Process.GetIdentity().GetPid()) != after || f.Held == nil || !f.Held.Alive() {
				t.Errorf("found %v, want process %d", f, after)
			}
			r.mustEventually(t, "two found", func() bool { return r.Status().Found == 2 })
			if status := r.Status(); status.Mode != mode {
				t.Errorf("status %+v", status)
			}
		})
	}
}

func TestChecksum(t *testing.T) {
	path := mustProgram(t, "attune-t-summed")
	data := files.Read(t, path)
	sum := sha256.Sum256(data)
	right, wrong := site("right", path), site("wrong", path)
	right.Sha256, wrong.Sha256 = strings.ToUpper(hex.EncodeToString(sum[:])), strings.Repeat("0", 64)
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			r := mustRun(t, Options{Prefer: mode})
			r.SetRegistrations([]*attunev1.Registration{wrong})
			pid := mustStart(t, exec.Command(path, "1000"))
			select {
			case m := <-r.mismatches:
				if int(m.GetPid()) != pid || m.GetRegistration() != "wrong" || !strings.Contains(m.GetReason(), hex.EncodeToString(sum[:])) {
					t.Errorf("mismatch %v", m)
				}
			case f := <-r.found:
				t.Fatalf("found %v in spite of its checksum", f)
			case <-time.After(patience.Limit):
				t.Fatal("no mismatch")
			}
			r.SetRegistrations([]*attunev1.Registration{wrong, right})
			if f := r.mustFind(t); f.Registration.GetId() != "right" || int(f.Process.GetIdentity().GetPid()) != pid {
				t.Errorf("found %v", f)
			}
		})
	}
}

// A registration is kept from a program and not from the process: a script of the same name that
// executes the one that is meant is none that is.
func TestChecksumBehindAWrapper(t *testing.T) {
	const name = "attune-t-wrapped"
	path := mustProgram(t, name)
	data := files.Read(t, path)
	sum := sha256.Sum256(data)
	summed := site("summed", name)
	summed.Sha256 = hex.EncodeToString(sum[:])
	script := mustWrite(t, filepath.Join(t.TempDir(), name), "#!/bin/sh\nread go\nexec "+path+" 1000\n")
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{summed})
	command := exec.Command(script)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pid := mustStart(t, command)
	if m := patience.Receive(t, "a mismatch of the script", r.mismatches); int(m.GetPid()) != pid {
		t.Errorf("%v", m)
	}
	if _, err := input.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	r.mustFindOnly(t, pid)
}
