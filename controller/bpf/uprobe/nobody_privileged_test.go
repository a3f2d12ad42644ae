// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/internal/bpftest"
)

// Root is not needed: the two capabilities that the remedy names are enough, where
// the kernel has uprobe_multi. The test runs some of the others again.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	tests := "TestSinglyNeedsAdmin"
	if kernelHas(t, linuxWithMulti) {
		tests += "|TestThreads|TestSampled|TestLibrary"
	}
	bpftest.AsNobody(t, tests)
}
