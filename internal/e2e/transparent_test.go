// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a shell script can see or do must be the same with and without attune.
func TestProgramSeesNoDifference(t *testing.T) {
	tests := []struct {
		name, stdin, script string
	}{
		{"exit code 0", "", "exit 0"},
		{"exit code 3", "", "exit 3"},
		{"exit code 255", "", "exit 255"},
		{"killed by SIGTERM", "", "kill -TERM $$"},
		{"killed by SIGKILL", "", "kill -KILL $$"},
		{"killed by SIGABRT", "", "ulimit -c 0; kill -ABRT $$"},
		{"standard input", "one\ntwo\n", "cat"},
		{"both outputs", "", "echo out; echo err >&2"},
		{"many lines", "", "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done"},
		{"working directory", "", "pwd"},
		{"descriptors", "", "ls /proc/self/fd | grep -c ."},
		{"ignored signals", "", "grep -E '^Sig(Ign|Blk)' /proc/self/status"},
		{"file mode mask", "", "umask"},
		{"limits", "", "ulimit -a"},
		{"nice value", "", "nice"},
		{"children", "", "for i in 1 2 3; do (exit $i); echo $?; done"},
		{"background child that outlives the shell", "", "(sleep 0.3; echo late) & exit 4"},
		{"setuid program", "", "test -u /bin/su && /bin/su --version | head -c 2"},
		{"closes every descriptor", "", "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; echo still here"},
		{"empty environment", "", "env -i /bin/sh -c 'env | grep -v -E \"^(PWD|SHLVL|_)=\"'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			command := []string{"/bin/bash", "-c", tt.script}
			want := run(t, tt.stdin, command...)
			got := run(t, tt.stdin, append([]string{attune, "run", "--quiet", "--"}, command...)...)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("with attune (-without +with):\n%s", diff)
			}
		})
	}
}
