// SPDX-License-Identifier: Apache-2.0

//go:build site

package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// patientBudget is for tests whose subject is not the time that a job waits.
const patientBudget = "budget=60000"

// site is the cluster of all tests. A cluster takes seconds to start, and Slurm
// reads plugstack.conf and the prolog anew for each step.
var site struct {
	*cluster.Cluster
	folder string // that the nodes see
}

func TestMain(m *testing.M) {
	status, err := runOnCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func runOnCluster(m *testing.M) (status int, err error) {
	if out, err := exec.Command("make", "-s", "-C", "spank").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("make: %w\n%s", err, out)
	}
	if site.folder, err = os.MkdirTemp("", "attune-slurm-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(site.folder)
	if err := os.Chmod(site.folder, 0o777); err != nil {
		return 1, err
	}
	setup := filepath.Join(site.folder, "setup")
	const script = "mkdir -p /etc/slurm; echo TaskProlog=/etc/slurm/prolog >/etc/slurm/more.conf; ln -sf /bin/true /etc/slurm/prolog\n"
	if err := os.WriteFile(setup, []byte(script), 0o600); err != nil {
		return 1, err
	}
	site.Cluster, err = cluster.Start(context.Background(), cluster.Options{Repository: "../..", Setup: setup, Keep: []string{site.folder}})
	if err != nil {
		return 1, err
	}
	defer site.Close()
	return m.Run(), nil
}

// mustShare makes a folder that all users of all nodes may write to.
func mustShare(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp(site.folder, "") //nolint:usetesting // the nodes see that folder only
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	return folder
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// mustPlug gives Slurm the plugin, with these arguments, for the rest of a test.
func mustPlug(t *testing.T, arguments string) {
	t.Helper()
	const file = "/etc/slurm/plugstack.conf"
	line := fmt.Sprintf("required %s %s\n", mustAbs(t, "spank/build/spank_attune.so"), arguments)
	if err := site.WriteFile(t.Context(), file, line); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustRunAsRoot(t, "rm", file) })
}

// mustSetProlog makes a script the prolog of all tasks for the rest of a test.
func mustSetProlog(t *testing.T, script string) {
	t.Helper()
	const file = "/etc/slurm/prolog"
	mustRunAsRoot(t, "ln", "-sf", script, file)
	t.Cleanup(func() { mustRunAsRoot(t, "ln", "-sf", "/bin/true", file) })
}

func mustRunAsRoot(t *testing.T, command ...string) {
	t.Helper()
	if _, err := site.Run(context.Background(), "", cluster.Login, command...); err != nil {
		t.Fatal(err)
	}
}

// run runs a command of alice's on the login node, in her home, and returns what
// it wrote.
func run(t *testing.T, command string) (string, error) {
	t.Helper()
	ctx := patience.Context(t)
	out, err := site.Command(ctx, cluster.Alice, cluster.Login, "sh", "-c", "cd; "+command).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: %v\n%s\n%s", command, ctx.Err(), out, site.Logs(t.Context()))
	}
	return string(out), err
}

func mustRun(t *testing.T, command string) string {
	t.Helper()
	out, err := run(t, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", command, err, out, site.Logs(t.Context()))
	}
	return out
}
