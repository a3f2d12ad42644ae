// SPDX-License-Identifier: Apache-2.0

package apparmor

import (
	"os/exec"
	"testing"
)

// TestProfiles: AppArmor understands every line.
func TestProfiles(t *testing.T) {
	for _, name := range []string{"attuned", "attune-analyzer", "attune-ca"} {
		out, err := exec.Command("/usr/sbin/apparmor_parser", "--skip-kernel-load", "--skip-cache", name).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v (scripts/deps test installs apparmor): %s", name, err, out)
		}
	}
}
