// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	other := errors.New("disk on fire")
	tests := []struct {
		name        string
		err         error
		unsupported bool
		says        string
	}{
		{"nothing", nil, false, ""},
		{"privilege", fmt.Errorf("load: %w", unix.EPERM), true, "CAP_BPF and CAP_PERFMON"},
		{"kernel", fmt.Errorf("load: %w", ebpf.ErrNotSupported), true, "this kernel"},
		{"verifier", &ebpf.VerifierError{Cause: unix.EACCES}, true, "verifier"},
		{"known already", &UnsupportedError{Feature: "x", Reason: "y"}, true, "x: y"},
		{"other", other, false, "disk on fire"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Explain("feature", test.err)
			if errors.Is(got, ErrUnsupported) != test.unsupported {
				t.Errorf("unsupported = %t: %v", !test.unsupported, got)
			}
			if test.err == nil {
				if got != nil {
					t.Errorf("error %v out of none", got)
				}
				return
			}
			if !errors.Is(got, test.err) || !strings.Contains(got.Error(), test.says) {
				t.Errorf("error %q, want it to wrap %q and to say %q", got, test.err, test.says)
			}
		})
	}
}
