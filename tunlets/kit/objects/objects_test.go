// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestRunsOrMaps(t *testing.T) {
	for _, tt := range []struct {
		pattern, executable string
		objects             []string
		want                bool
	}{
		{"solver", "/opt/solver", nil, true},
		{"solver*", "/opt/solver-2.1", nil, true},
		{"libpool.so*", "/usr/bin/python3", []string{"/usr/lib/libpool.so.1"}, true},
		{"solver", "/usr/bin/mpirun", nil, false},
		{"*", "/usr/bin/anything", nil, true},
	} {
		process := sdk.Process{Executable: tt.executable, Objects: tt.objects}
		if got := RunsOrMaps(process, tt.pattern); got != tt.want {
			t.Errorf("%q in %s: %v", tt.pattern, tt.executable, got)
		}
	}
}
