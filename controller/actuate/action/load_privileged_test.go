// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package action

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A process with a root directory of its own is given what its links lead to there, and not
// what they would lead to here.
func TestLibraryInAnotherRoot(t *testing.T) {
	root := t.TempDir()
	program := targets.BuildWith(t, "gcc", "tuned", "../testdata/tuned.c", "../testdata/tuned_other.c", "-static")
	if err := os.Link(program, root+"/tuned"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root+"/attune-libraries", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(buildLibrary(t), root+"/attune-libraries/library.so"); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"lib": "/attune-libraries", "out": filepath.Dir(buildLibrary(t))} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("/tuned")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	process := actuatetest.MustProcess(t, targets.StartCommand(t, command).PID)
	for path, there := range map[string]bool{"/lib/library.so": true, "/out/library.so": false} {
		if err := checkLibrary(process, &attunev1.LoadLibrary{Path: path, Symbol: "from_library"}); (err == nil) != there {
			t.Errorf("%s: %v, there %v", path, err, there)
		}
	}
}
