// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package discover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stranger is a user without rights or name.
const stranger = 4711

// mustOpen lets other users through to a test's folder.
func mustOpen(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func mustRunBy(t *testing.T, way int, options Options) *running {
	t.Helper()
	options.PollInterval = 10 * time.Millisecond
	r := &running{recorder: newRecorder()}
	options.Handler = r.recorder
	var err error
	if r.Watcher, err = New(options); err != nil {
		t.Fatal(err)
	}
	r.listener.ways = r.listener.ways[way : way+1]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		r.drain()
	})
	r.mustEventually(t, "running", func() bool { return r.Status().Mode != "" })
	return r
}

// However short a process lives, it is not missed, and all of the criteria but a
// checksum that was never computed are known.
func TestShortProcesses(t *testing.T) {
	count := targets.Fewer(2000)
	for way, name := range []string{"bpf", "bpf without accounts", "connector"} {
		t.Run(name, func(t *testing.T) {
			data := files.Read(t, "/bin/true")
			path := mustWrite(t, filepath.Join(t.TempDir(), "attune-t-short"), string(data))
			r := mustRunBy(t, way, Options{})
			registration := site("r", path)
			registration.Arguments = "wanted$"
			r.SetRegistrations([]*attunev1.Registration{registration})
			r.mustEventually(t, "registered", func() bool { return r.Status().Registrations == 1 })
			started := make(map[int]bool)
			for range count {
				command := exec.Command(path, "wanted")
				if err := command.Run(); err != nil {
					t.Fatal(err)
				}
				started[command.Process.Pid] = true
			}
			if name != "connector" {
				r.mustEventually(t, "all found", func() bool { return len(r.found) == count || r.Status().Lost > 0 })
			}
			if name == "connector" { // says how many it could not look at in time, and that events were lost
				r.mustEventually(t, "all accounted for", func() bool {
					return len(r.found)+int(r.Status().Missed) >= count || r.Status().Lost > 0
				})
			}
			t.Logf("%d of %d found, %+v", len(r.found), count, r.Status())
			found := make(map[int]bool)
			for _, f := range r.drain() {
				pid := int(f.Process.GetIdentity().GetPid())
				if !started[pid] {
					t.Errorf("process %d is found, which was not started here", pid)
				}
				found[pid] = true
			}
			// On a machine that others use, too, their processes may fill the buffer.
			status := r.Status()
			crowded := status.Lost > 0 && !testing.Short()
			if name != "connector" && !crowded && (len(found) != count || status.Lost != 0 || status.Missed != 0) {
				t.Errorf("%d found, %+v", len(found), status)
			}
		})
	}
}

// A process in namespaces of its own is found under its number here.
func TestContainer(t *testing.T) {
	path := mustProgram(t, "attune-t-contained")
	eachMode(t, site("r", path), Options{}, func(t *testing.T) int {
		outer := mustStart(t, exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", path, "1000"))
		var child int
		for child == 0 {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", outer))
			_, _ = fmt.Sscan(string(text), &child)
		}
		return child
	})
}

// A program with more rights than its user is not the user's to change.
func TestPrivilegedProgram(t *testing.T) {
	path := mustProgram(t, "attune-t-setuid")
	mustOpen(t, path)
	if err := os.Chmod(path, os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	theirs := &attunev1.Registration{Id: "theirs", Executable: path, Owner: principal(attunev1.Role_ROLE_USER, "", stranger)}
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			r := mustRun(t, Options{Prefer: mode})
			r.SetRegistrations([]*attunev1.Registration{theirs})
			command := exec.Command(path, "1000")
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger}}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = command.Process.Kill()
				_ = command.Wait() // killed
			}()
			select {
			case m := <-r.mismatches:
				if int(m.GetPid()) != command.Process.Pid || !strings.Contains(m.GetReason(), "privileges") {
					t.Errorf("mismatch %v", m)
				}
			case f := <-r.found:
				t.Errorf("found %v", f)
			case <-time.After(patience.Limit):
				t.Error("nothing was told")
			}
			r.SetRegistrations([]*attunev1.Registration{theirs, site("site", path)})
			r.mustFindOnly(t, command.Process.Pid)
		})
	}
}
