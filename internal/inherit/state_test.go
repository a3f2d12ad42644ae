// SPDX-License-Identifier: Apache-2.0

package inherit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/procid"
)

func TestCapturedAheadOfTheRuntime(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the entry records nothing on this processor")
	}
	tests := []struct {
		name, ldflags, shell string
		want                 State
	}{
		{"nothing special", "-E attune_entry", "", State{Exact: true}},
		{"stdin closed", "-E attune_entry", "exec <&-;", State{Exact: true, Closed: 1}},
		{"stdout and stderr closed", "-E attune_entry", "exec >&- 2>&-;", State{Exact: true, Closed: 6}},
		{
			"ignored", "-E attune_entry", "trap '' QUIT TERM SEGV;",
			State{Exact: true, Ignored: procid.Signals(0).With(syscall.SIGQUIT).With(syscall.SIGTERM).With(syscall.SIGSEGV)},
		},
		{"without the flag", "", "exec <&-; trap '' QUIT HUP;", State{Ignored: procid.Signals(0).With(syscall.SIGHUP)}},
	}
	binaries := map[string]string{}
	for _, tt := range tests {
		if binaries[tt.ldflags] == "" {
			binaries[tt.ldflags] = build(t, tt.ldflags)
		}
		t.Run(tt.name, func(t *testing.T) {
			// Nothing is inherited from who runs the tests, such as nohup.
			cmd := exec.Command("env", "--default-signal", "sh", "-c", "exec 9>&1;"+tt.shell+"exec "+binaries[tt.ldflags])
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got State
			if err := json.NewDecoder(bytes.NewReader(out)).Decode(&got); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			got.Ignored &^= glibcInternal
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// glibcInternal are the two signals that glibc keeps for itself. Its
// posix_spawn, and so make, leaves them ignored in what it starts.
var glibcInternal = procid.Signals(0).With(32).With(33)

// build compiles the probe program.
func build(t *testing.T, ldflags string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "probe")
	cmd := exec.Command("go", "build", "-ldflags", ldflags, "-o", bin, "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}
