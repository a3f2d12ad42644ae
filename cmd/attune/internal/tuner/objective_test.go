// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/testing/asuser"
)

// A command is not run on behalf of somebody else, least of all by root.
func TestNoCommandForAnotherUser(t *testing.T) {
	pid := 1
	if os.Geteuid() == 0 {
		const nobody = 65534
		pid = asuser.Sleep(t, nobody)
	}
	_, err := OpenObjectiveOf("command:id -u", []int{os.Getpid(), pid})
	var usage *exitcode.Error
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "would run as you") {
		t.Errorf("error %v", err)
	}
	if o, err := OpenObjectiveOf("command:id -u", []int{os.Getpid()}); err != nil || o.source == nil {
		t.Errorf("for a process of one's own: %v", err)
	}
	if o, err := OpenObjectiveOf("point:f", []int{pid}); err != nil || o.spec == nil || o.source != nil {
		t.Errorf("a point: %v", err)
	}
}
