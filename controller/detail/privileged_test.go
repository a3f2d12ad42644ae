// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package detail

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// The sockets of a process in another network namespace, as in a container, are
// read all the same, though seldom.
func TestOtherNetwork(t *testing.T) {
	r := newRig(t, sockets)
	r.does("net")
	fds, unixFDs := r.does("tcp"), r.does("unix")
	r.settle()
	if n := len(r.roundAfter(50 * time.Millisecond).Sockets.Items); n != 0 {
		t.Errorf("%d sockets are read again at once", n)
	}
	r.does(fmt.Sprint("nodelay ", fds[0]))
	r.does(fmt.Sprintf("write %d 100", fds[0]))
	r.does(fmt.Sprintf("write %d 100", unixFDs[0]))
	r.now = r.now.Add(LookForeign)
	all := r.socketsOf(r.round())
	if s := all[fds[0]]; !s.TCP.NoDelay || s.TCP.DataSegmentsSent != 1 || s.Local != all[fds[1]].Peer || s.Local == "" {
		t.Errorf("socket in another network: %v", s)
	}
	if s := all[unixFDs[0]]; s.Kind != kindUnix || s.SendQueuedBytes < 100 {
		t.Errorf("socket in another network: %v", s)
	}
}

// A user reads their own processes, and hears why not of others.
func TestOwnProcessesOnly(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint("own ", own), func(t *testing.T) {
			r := newRig(t, sockets, pipes, mapped)
			if own {
				r.does("user")
			}
			r.does("tcp")
			r.does("pipe")
			var got *series.Details
			if err := asuser.Do(credential.Uid, func() {
				for range settled + 1 {
					r.now = r.now.Add(time.Second)
					got, _ = r.read(r.want, 1000)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if own {
				if len(items(got.Sockets)) != 3 || len(items(got.Pipes)) < 2 || got.Memory.ResidentBytes == 0 {
					t.Errorf("own process: %v", got)
				}
				return
			}
			if len(failures(got)) != 3 {
				t.Errorf("details of another user's process %v", got)
			}
			for kind, text := range failures(got) {
				if !strings.Contains(text, "owner and root only") {
					t.Errorf("%s of another user's process: %q", kind, text)
				}
			}
		})
	}
}

// Root reads another user's program, here a pipeline that is held up at its end.
func TestPipelineOfAnotherUser(t *testing.T) {
	cmd := exec.Command("sh", "-c", "cat /dev/zero | sleep 60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &credential, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	}()
	r := &rig{t: t, now: time.Unix(1000, 0)}
	r.reader = New()
	r.reader.now = func() time.Time { return r.now }
	defer r.reader.Close()
	r.want = want{source.Process{Handle: 1, Identity: childCalled(t, cmd.Process.Pid, "cat")}, []series.TableID{pipes}}
	for deadline := time.Now().Add(patience.Limit); ; {
		for _, p := range items(r.round().Pipes) {
			if p.FD == 1 && p.Writes && p.QueuedBytes > 0 && p.QueuedBytes == p.CapacityBytes {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no full pipe: %v", r.round())
		}
	}
}

// credential is nobody's.
var credential = syscall.Credential{Uid: 65534, Gid: 65534}

// childCalled waits for a process of a group to execute a program.
func childCalled(t *testing.T, group int, name string) procid.Identity {
	t.Helper()
	for deadline := time.Now().Add(patience.Limit); time.Now().Before(deadline); {
		pids, err := procid.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			if stat, err := procid.ReadStat(pid); err == nil && stat.ProcessGroup == group && stat.Comm == name {
				if identity, err := procid.Of(pid); err == nil {
					return identity
				}
			}
		}
	}
	t.Fatalf("no %s in 20 s", name)
	return procid.Identity{}
}
