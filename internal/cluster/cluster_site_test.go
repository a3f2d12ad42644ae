// SPDX-License-Identifier: Apache-2.0

//go:build site

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func mustStart(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Repository = "../.."
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustRun runs a command for a minute at most, and returns its output.
func mustRun(t *testing.T, c *Cluster, user, node string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := c.Run(ctx, user, node, command...)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	return out
}

func TestSlurmStartsTasksOnAllNodes(t *testing.T) {
	c := mustStart(t, Options{})
	out := strings.Fields(mustRun(t, c, Alice, Login, "srun", "--overcommit", "-N2", "-n8", "sh", "-c", "echo $(hostname):$(id -un)"))
	slices.Sort(out)
	want := append(slices.Repeat([]string{"node1:alice"}, 4), slices.Repeat([]string{"node2:alice"}, 4)...)
	if !slices.Equal(out, want) {
		t.Errorf("tasks %q, want %q", out, want)
	}
}

// Open MPI starts the ranks of the other node by qrsh.
func TestGridEngineStartsTasksOnAllNodes(t *testing.T) {
	c := mustStart(t, Options{Batch: "gridengine"})
	const job = "#!/bin/sh\n#$ -pe mpi 4 -j y -o /home/alice/out\nmpirun.openmpi -np 4 sh -c 'echo $(hostname):$(id -un)'\n"
	if err := c.WriteFile(t.Context(), "/home/alice/job", job); err != nil {
		t.Fatal(err)
	}
	mustRun(t, c, Alice, Login, "qsub", "/home/alice/job") // -sync looks only every ten seconds
	out := strings.Fields(mustRun(t, c, "", Login, "sh", "-c", "cd /home/alice; until [ \"$(cat out | wc -l)\" = 4 ]; do sleep 0.1; done 2>&-; cat out"))
	slices.Sort(out)
	if want := []string{"node1:alice", "node1:alice", "node2:alice", "node2:alice"}; !slices.Equal(out, want) {
		t.Errorf("tasks %q, want %q", out, want)
	}
}

// A node sees its own processes and files only.
func TestNodesAreApart(t *testing.T) {
	c := mustStart(t, Options{Batch: "none"})
	mustRun(t, c, "", "node1", "sh", "-c", "touch /tmp/mine /run/mine /home/ours; (exec sleep 301) >/dev/null 2>&1 &")
	out := mustRun(t, c, "", "node2", "sh", "-c", "ls /tmp/mine /run/mine /home/ours 2>/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; hostname")
	if !strings.HasPrefix(out, "/home/ours\n") || strings.Contains(out, "301") || !strings.HasSuffix(out, "node2\n") {
		t.Errorf("node2 sees %q", out)
	}
}

func TestSetupRunsOnEachNode(t *testing.T) {
	setup := filepath.Join(t.TempDir(), "setup")
	if err := os.WriteFile(setup, []byte("echo $NODE >/tmp/name\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustStart(t, Options{Batch: "none", Nodes: 1, Setup: setup, Keep: []string{filepath.Dir(setup)}})
	for _, node := range []string{Login, "node1"} {
		if got := mustRun(t, c, "", node, "cat", "/tmp/name"); got != node+"\n" {
			t.Errorf("on %s: %q", node, got)
		}
	}
}

// Killed with no time to clean up, a cluster leaves no process.
func TestNothingSurvives(t *testing.T) {
	c := mustStart(t, Options{})
	all := held(t, c.cmd.Process.Pid)
	if len(all) < 10 { // three nodes with daemons
		t.Fatalf("%d processes in the cluster", len(all))
	}
	if err := syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		ended := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
		n, err := unix.Poll(ended, int(time.Minute.Milliseconds()))
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(ended, int(time.Minute.Milliseconds()))
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
