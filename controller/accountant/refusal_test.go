// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
)

// TestBetterWithRoot: root is not told that root would do better.
func TestBetterWithRoot(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		root bool
	}{
		{"privilege", unix.EPERM, true},
		{"kernel", unix.EINVAL, false},
		{"verifier", &ebpf.VerifierError{Cause: unix.EACCES}, false},
		{"no type information", errors.New("no BTF"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			says := whyNotKernel(bpf.Explain("accounts", test.err))
			if strings.HasPrefix(says, "better with root") != test.root || !strings.Contains(says, test.err.Error()) {
				t.Errorf("says %q", says)
			}
		})
	}
}
