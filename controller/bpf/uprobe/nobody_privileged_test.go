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
	tests := []string{"TestSinglyNeedsAdmin"}
	if kernelHas(t, linuxWithMulti) {
		tests = append(tests, "TestThreadsAreCountedTogether", "TestSampledEvents", "TestLibraryOfRunningProcess")
	}
	bpftest.AsNobody(t, tests...)
}
