// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
)

// The versions that what is tested here began with.
const (
	linuxWithMulti = 6<<16 | 6<<8
	// linuxWithNops is when 5-byte nops under a probe became calls.
	linuxWithNops = 6<<16 | 18<<8
)

// kernelHas says whether the running kernel should have what came with a
// version. What an older one lacks is asserted, not skipped.
func kernelHas(t *testing.T, version uint32) bool {
	t.Helper()
	running, err := features.LinuxVersionCode()
	if err != nil {
		t.Fatal(err)
	}
	return running >= version
}

// A kernel without uprobe_multi is served one function at a time, and says why.
func TestMechanismSaysWhyNotMulti(t *testing.T) {
	want, wantWhy := "uprobe_multi", ""
	if !kernelHas(t, linuxWithMulti) {
		want, wantWhy = "uprobe", "uprobe_multi: not in this kernel (6.6 or newer)"
	}
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{})
	a := mustAttach(t, u, Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	if got, why := a.Mechanism(); got != want || why != wantWhy {
		t.Errorf("%s, %q; want %s, %q", got, why, want, wantWhy)
	}
}

// TestSinglyNeedsAdmin is run by TestTwoCapabilitiesAreEnough: a perf event on
// a uprobe takes CAP_SYS_ADMIN, and who lacks it is told so.
func TestSinglyNeedsAdmin(t *testing.T) {
	if os.Geteuid() == 0 {
		return
	}
	binary := mustCompile(t, "target.c")
	u := mustUprobes(t, Options{singly: true})
	_, err := u.Attach(Spec{Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 1})
	var unsupported *bpf.UnsupportedError
	if !errors.As(err, &unsupported) || !errors.Is(err, unix.EACCES) || !strings.Contains(unsupported.Remedy, "CAP_SYS_ADMIN") {
		t.Errorf("attach: %v, want a refusal that names CAP_SYS_ADMIN", err)
	}
}
