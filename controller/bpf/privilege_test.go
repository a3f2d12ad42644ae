// SPDX-License-Identifier: Apache-2.0

package bpf_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
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
