// SPDX-License-Identifier: Apache-2.0

package bpf_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/confine"
)

// Whoever may not load programs is told so, with the remedy.
func TestUnprivilegedIsToldTheRemedy(t *testing.T) {
	if bpf.RequirePrivilege("x") == nil {
		t.Skip("this user has the privilege")
	}
	_, uprobesErr := uprobe.New(uprobe.Options{})
	_, eventsErr := procevent.New(procevent.Options{})
	for _, err := range []error{uprobesErr, eventsErr} {
		if !errors.Is(err, bpf.ErrUnsupported) || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), bpf.PrivilegeRemedy) {
			t.Errorf("error %v", err)
		}
	}
}

func TestMayLoad(t *testing.T) {
	bit := func(capabilities ...int) (set confine.Capabilities) {
		for _, c := range capabilities {
			set |= 1 << c
		}
		return set
	}
	tests := []struct {
		name string
		set  confine.Capabilities
		want bool
	}{
		{"none", 0, false},
		{"BPF alone", bit(unix.CAP_BPF), false},
		{"BPF and PERFMON", bit(unix.CAP_BPF, unix.CAP_PERFMON), true},
		{"SYS_ADMIN", bit(unix.CAP_SYS_ADMIN), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := bpf.MayLoad(test.set); got != test.want {
				t.Errorf("may load: %t", got)
			}
		})
	}
}
