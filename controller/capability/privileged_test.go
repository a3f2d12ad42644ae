// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package capability

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/debugregs"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Here, as root on a kernel with all of it, nothing of this may be missing.
func TestRootHasTheMechanisms(t *testing.T) {
	found := Probe(t.Context(), Options{})
	for _, name := range []string{
		preload, got, uprobes, "btf", "bpf_ring_buffer", execEvent, "process_connector", ptrace, vmWrite,
		"pidfd_getfd", "process_madvise", "memfd_sealing", "wipe_on_fork",
	} {
		if c := find(t, found, name); c.State != Available {
			t.Errorf("%+v", c)
		}
	}
	breakpoints := Available
	if debugregs.Dead() {
		breakpoints = Degraded
	}
	if c := find(t, found, "hardware_breakpoint"); c.State != breakpoints {
		t.Errorf("%+v", c)
	}
}

// The same tests as nobody: the answers must then name the privilege.
func TestAsNobody(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Test binaries lie in directories that only their owner may enter.
	binary := filepath.Join(t.TempDir(), "capability.test")
	image := files.Read(t, self)
	if err := targets.WriteProgram(binary, image); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	command := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--",
		"/proc/self/fd/3")
	command.ExtraFiles = []*os.File{file}
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "ATTUNE_TEST_NOBODY=1"}
	command.Dir = "/"
	asuser.RunTests(t, command, "TestProbeLeavesNothing", "TestPrivilegesAndProbesAgree", "TestFastIsSubsetInOrder",
		"TestEndedContext", "TestSystemProbes", "TestEvenNobody")
}

// TestEvenNobody is what an ordinary user can do with own processes.
func TestEvenNobody(t *testing.T) {
	if os.Getenv("ATTUNE_TEST_NOBODY") == "" {
		return // TestAsNobody runs it
	}
	found := Probe(t.Context(), Options{})
	for _, name := range []string{preload, got, ptrace, vmWrite, "pidfd_getfd", "memfd_sealing", "wipe_on_fork"} {
		if c := find(t, found, name); c.State == Unavailable {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range []string{uprobes, execEvent, "cap_bpf", "cap_sys_ptrace"} {
		if c := find(t, found, name); c.State != Unavailable || c.Remedy == "" {
			t.Errorf("%+v", c)
		}
	}
}
