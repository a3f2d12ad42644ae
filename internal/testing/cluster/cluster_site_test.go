// SPDX-License-Identifier: Apache-2.0

//go:build site

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func mustStart(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Repository = "../../.."
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mustRun(t *testing.T, c *Cluster, user, node string, command ...string) string {
	t.Helper()
	out, err := c.Run(patience.Context(t), user, node, command...)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	return out
}

func TestSlurm(t *testing.T) {
	c := mustStart(t, Options{})
	t.Run("tasks start on all nodes", func(t *testing.T) {
		out := strings.Fields(mustRun(t, c, Alice, Login, "srun", "--overcommit", "-N2", "-n8", "sh", "-c", "echo $(hostname):$(id -un)"))
		slices.Sort(out)
		want := append(slices.Repeat([]string{"node1:alice"}, 4), slices.Repeat([]string{"node2:alice"}, 4)...)
		if !slices.Equal(out, want) {
			t.Errorf("tasks %q, want %q", out, want)
		}
	})
	t.Run("nothing survives", func(t *testing.T) { wantNothingSurvives(t, c) })
}

func TestUserOfTheMachineIsAnother(t *testing.T) {
	users := files.Read(t, "/etc/passwd")
	passwd := filepath.Join(t.TempDir(), "passwd")
	files.Write(t, passwd, append([]byte("alice:x:999:999::/nowhere:/bin/sh\n"), users...), 0o644)
	out, err := exec.CommandContext(patience.Context(t), "unshare", "--mount", "sh", "-c",
		`mount --bind "$0" /etc/passwd && exec ../../../scripts/cluster --nodes 1 --batch none id -u alice`, passwd).CombinedOutput()
	if err != nil || string(out) != "2001\n" {
		t.Errorf("uid of alice: %s, %v", out, err)
	}
}

func TestNodes(t *testing.T) {
	setup := filepath.Join(t.TempDir(), "setup")
	files.Write(t, setup, "echo $NODE >/tmp/name\n", 0o600)
	c := mustStart(t, Options{Batch: "none", Setup: setup, Keep: []string{filepath.Dir(setup)}})
	t.Run("the setup runs on each", func(t *testing.T) {
		for _, node := range []string{Login, "node1", "node2"} {
			if got := mustRun(t, c, "", node, "cat", "/tmp/name"); got != node+"\n" {
				t.Errorf("on %s: %q", node, got)
			}
		}
	})
	t.Run("each has its own processes and files", func(t *testing.T) {
		mustRun(t, c, "", "node1", "sh", "-c", "touch /tmp/mine /run/mine /home/ours; (exec sleep 301) >/dev/null 2>&1 &")
		out := mustRun(t, c, "", "node2", "sh", "-c", "ls /tmp/mine /run/mine /home/ours 2>/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; hostname")
		if !strings.HasPrefix(out, "/home/ours\n") || strings.Contains(out, "301") || !strings.HasSuffix(out, "node2\n") {
			t.Errorf("node2 sees %q", out)
		}
	})
}

// wantNothingSurvives checks that a cluster that is killed with no time to clean
// up leaves no process.
func wantNothingSurvives(t *testing.T, c *Cluster) {
	t.Helper()
	all := held(t, c.cmd.Process.Pid)
	if len(all) < 10 { // three nodes with daemons
		t.Fatalf("%d processes in the cluster", len(all))
	}
	if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		ended := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		n, err := unix.Poll(ended, int(patience.Limit.Milliseconds()))
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(ended, int(patience.Limit.Milliseconds()))
		}
		if n != 1 {
			t.Fatalf("a process goes on: %d, %v", n, err)
		}
	}
}

// held returns pidfds of all that descend from a process.
func held(t *testing.T, pid int) (descriptors []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			if fd, err := unix.PidfdOpen(n, 0); err == nil {
				t.Cleanup(func() { _ = unix.Close(fd) })
				descriptors = append(append(descriptors, fd), held(t, n)...)
			}
		}
	}
	return descriptors
}
