// SPDX-License-Identifier: Apache-2.0

//go:build vm

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// user is how setpriv makes one. Nobody has the named capabilities only.
func nobody(capabilities ...string) []string {
	held := strings.Join(append([]string{"-all"}, capabilities...), ",+")
	user := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=" + held}
	if len(capabilities) > 0 {
		user = append(user, "--inh-caps="+held, "--ambient-caps="+held)
	}
	return append(user, "--")
}

const (
	yama     = "/proc/sys/kernel/yama/ptrace_scope"
	paranoid = "/proc/sys/kernel/perf_event_paranoid"
	lockdown = "/sys/kernel/security/lockdown"
)

// finding is a state with words that its reason or remedy holds.
type finding struct{ state, words string }

// restriction is a setting of the kernel, and a user, with whom less can be
// done than with root on a kernel that allows everything.
type restriction struct {
	name string
	// file is written to before, with value.
	file, value string
	user        []string
	// found is what attune doctor says of some mechanisms.
	found map[string]finding
	// refusal holds words of the reason why the kernel watches nothing; empty
	// if it does. unreachable holds those of why DMLib does not either, unless
	// the program comes to a safe point of itself.
	refusal, unreachable string
}

func restrictions(t *testing.T) []restriction {
	const here, not, partly = "available", "unavailable", "degraded"
	const wantsBPF, wantsAdmin = "CAP_BPF and CAP_PERFMON", "CAP_SYS_ADMIN"
	two := restriction{name: "two capabilities", user: nobody("bpf", "perfmon"), found: map[string]finding{
		"uprobe": {here, ""}, "exec_events": {here, ""}, "cap_sys_ptrace": {not, "CAP_SYS_PTRACE"},
	}}
	multi := finding{here, ""}
	if !kernelHas(t, 6, 6) {
		multi = finding{partly, "needs Linux 6.6"}
		two.refusal, two.found["uprobe"] = wantsAdmin, finding{not, wantsAdmin}
	}
	return []restriction{
		{name: "none", found: map[string]finding{
			"uprobe": {here, ""}, "exec_events": {here, ""}, "lockdown": {here, ""}, "ptrace": {here, ""},
			"uprobe_multi": multi,
		}},
		{name: "nobody", user: nobody(), refusal: wantsBPF, found: map[string]finding{
			"preload": {here, ""}, "uprobe": {not, wantsBPF}, "exec_events": {not, wantsBPF}, "ptrace": {here, ""},
		}},
		two,
		{name: "Yama 1", file: yama, value: "1", user: nobody(), refusal: wantsBPF, found: map[string]finding{
			"ptrace": {partly, "Yama scope 1"}, "process_vm_writev": {partly, "Yama scope 1"},
		}},
		{name: "Yama 2", file: yama, value: "2", user: nobody(), refusal: wantsBPF, unreachable: "kernel.yama.ptrace_scope", found: map[string]finding{
			"ptrace": {not, "Yama scope 2"}, "process_vm_writev": {not, "Yama scope 2"}, "pidfd_getfd": {not, "Yama scope 2"},
		}},
		{name: "no performance events", file: paranoid, value: "4", user: nobody(), refusal: wantsBPF, found: map[string]finding{
			"perf_software": {not, "kernel.perf_event_paranoid"}, "hardware_breakpoint": {not, "kernel.perf_event_paranoid"},
		}},
		// There is no way back from these two.
		{name: "integrity", file: lockdown, value: "integrity", found: map[string]finding{
			"uprobe": {here, ""}, "exec_events": {here, ""}, "lockdown": {partly, "locked down"},
		}},
		{name: "confidentiality", file: lockdown, value: "confidentiality", refusal: "locked down", found: map[string]finding{
			"uprobe": {not, "locked down"}, "exec_events": {not, "locked down"}, "lockdown": {partly, "nor read the kernel's"},
		}},
	}
}

// Whatever is not possible, attune says why, and the rest goes on: the program
// runs as it would have, and DMLib counts.
func TestRestrictions(t *testing.T) {
	folder := programs(t)
	for _, r := range restrictions(t) {
		t.Run(r.name, func(t *testing.T) {
			if r.file != "" {
				mustSet(t, r.file, r.value)
			}
			r.diagnose(t)
			o := observe(t, r.user, "sh", "-c", fmt.Sprintf("%s/moving <$0; exec %s/still", folder, folder))
			o.wantOutput(t)
			o.wantHooked(t, r.unreachable)
			o.wantProbed(t, r.refusal)
		})
	}
}

func (r restriction) diagnose(t *testing.T) {
	t.Helper()
	stdout := run(t, append(append([]string{}, r.user...), attune, "doctor", "--json")...)
	var found struct {
		Mechanisms []struct{ Name, State, Reason, Remedy string }
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, m := range found.Mechanisms {
		want, ok := r.found[m.Name]
		if !ok {
			continue
		}
		looked++
		if m.State != want.state || !strings.Contains(m.Reason+"; "+m.Remedy, want.words) {
			t.Errorf("%+v, want %s with %q", m, want.state, want.words)
		}
	}
	if looked != len(r.found) {
		t.Errorf("doctor knows %d of %d mechanisms", looked, len(r.found))
	}
}

// mustSet writes a setting of the kernel for the length of a test.
func mustSet(t *testing.T, file, value string) {
	t.Helper()
	before := files.Read(t, file)
	files.Write(t, file, value, 0)
	t.Cleanup(func() { _ = os.WriteFile(file, before, 0) }) // lockdown stays
}

// kernelHas says whether the running kernel is of a version, or newer.
func kernelHas(t *testing.T, major, minor uint32) bool {
	t.Helper()
	running, err := features.LinuxVersionCode()
	if err != nil {
		t.Fatal(err)
	}
	return running >= major<<16|minor<<8
}
