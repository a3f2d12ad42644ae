// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBarrier(t *testing.T) {
	const tracer, raw = 1 << unix.CAP_SYS_PTRACE, 1 << unix.CAP_NET_RAW
	root, user := Status{}, Status{Users: IDs{7, 7, 7, 7}, Groups: IDs{7, 7, 7, 7}}
	with := func(s Status, capabilities uint64) Status {
		s.Capabilities = capabilities
		return s
	}
	for name, tt := range map[string]struct {
		barrier
		says string
	}{
		"root in a container": {barrier{own: with(root, raw), other: with(root, raw|1<<unix.CAP_SYS_ADMIN)}, "lacks (CAP_SYS_ADMIN):"},
		"one with everything": {barrier{other: with(root, ^uint64(0))}, "lacks (CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, 60 more):"},
		"of a newer kernel":   {barrier{other: with(root, 1<<41)}, "lacks (capability 41):"},
		"with fewer of them":  {barrier{own: with(root, raw), other: root}, "run attune with CAP_SYS_PTRACE"},
		"a user's setuid":     {barrier{own: user, other: with(root, ^uint64(0))}, "another user"},
		"another group":       {barrier{other: Status{Groups: IDs{Saved: 7}}}, "another user or group"},
		"not dumpable":        {barrier{own: user, other: user, scope: "1"}, "cannot be dumped"},
		"Yama":                {barrier{own: user, other: user, file: 7, scope: "1"}, "kernel.yama.ptrace_scope is 1"},
		"Yama for users":      {barrier{own: user, other: user, file: 7, scope: "2"}, "is 2: run attune with CAP_SYS_PTRACE"},
		"Yama for all":        {barrier{own: with(root, tracer), other: root, scope: "3"}, "kernel.yama.ptrace_scope is 3"},
		"another namespace":   {barrier{own: user, other: with(user, ^uint64(0)), file: 7, foreign: true}, "another user namespace"},
		"one above":           {barrier{own: with(root, tracer), other: root, foreign: true}, "beyond the reach"},
		"a security module":   {barrier{own: with(root, tracer), other: root, scope: "1"}, "SELinux"},
	} {
		if got := tt.text(); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", name, got, tt.says)
		}
	}
	if got := Barrier(os.Getpid()); strings.Contains(got, "lacks") || strings.Contains(got, "namespace") || strings.Contains(got, "another") {
		t.Errorf("between this process and itself: %q", got)
	}
}
