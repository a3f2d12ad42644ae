// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package actuate_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// escalates executes the program that argv[1] names when it is told to; it lies at
// the same addresses in each process.
const escalates = `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile long secret = 5;
__attribute__((noinline, aligned(4096), patchable_function_entry(5))) long value(long n) { __asm__ volatile("" ::: "memory"); return 3 * n + 1; }
__attribute__((noinline)) long other(long n) { return n; }
__attribute__((noinline)) long betray(void) { secret = 6; return 0; }
int main(int argc, char **argv) {
    char line[64];
    printf("ready %d\n", (int)geteuid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "exec\n") == 0)
            execl(argv[argc - 1], argv[argc - 1], (char *)NULL);
        printf("secret %ld, value %ld\n", secret, value(2));
        fflush(stdout);
    }
    return (int)(other(0) + betray());
}
`

// setuidCopies returns a program that everybody may execute, and one that runs as
// root then.
func setuidCopies(t *testing.T) (ordinary, setuid string) {
	t.Helper()
	program, err := os.Open(targets.BuildText(t, "escalates", escalates, "-no-pie", "-fno-pie"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	// Not in t.TempDir: others have to reach it, and /tmp may be mounted nosuid.
	folder, err := os.MkdirTemp("/var/tmp", "attune-escalates-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	place := func(name string, mode os.FileMode) string {
		path := filepath.Join(folder, name, "escalates") // one name, as the object is looked for by it
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(file, io.NewSectionReader(program, 0, 1<<30))
		if err != nil || file.Close() != nil || os.Chmod(path, mode) != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return path
	}
	return place("ordinary", 0o755), place("setuid", 0o755|os.ModeSetuid)
}

// TestExecOfSetuidProgram: a process of a user executes a setuid program between the
// moment when its owner was asked and the moment when it is changed. Nothing of the
// program that root's rights belong to is touched.
func TestExecOfSetuidProgram(t *testing.T) {
	const alice = 61001
	ordinary, setuid := setuidCopies(t)
	function := func(symbol string) *attunev1.Function {
		return &attunev1.Function{Object: "escalates", Symbol: symbol}
	}
	for name, action := range map[string]*attunev1.Action{
		"a variable": actuatetest.Set(&attunev1.SetVariable{Object: "escalates", Symbol: "secret", Value: access.Integer(6)}),
		"a function": {Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{Old: function("value"), New: function("other")}}},
		"a call":     actuatetest.CallFunction(&attunev1.CallFunction{Object: "escalates", Symbol: "betray"}),
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(ordinary, setuid)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}}
			target := targets.Launch(t, cmd)
			target.Expect(t, "ready 61001")
			asked := false
			options := actuate.Options{
				Kinds: all, Journal: actuatetest.MustJournal(t, t.TempDir()), Asker: &attunev1.Principal{Name: "alice", Uid: alice, Role: attunev1.Role_ROLE_USER},
				Policy: func() *policy.Policy { // the owner has been asked, and the policy is about to be
					if !asked {
						asked = true
						if err := target.Say("exec"); err != nil {
							t.Error(err)
						}
						target.Expect(t, "ready 0")
					}
					return nil
				},
			}
			got := actuate.New(options).Apply(t.Context(), actuatetest.MustProcess(t, target.PID), &attunev1.Change{Id: "c", Knob: "c", Action: action})
			if !asked || got.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED {
				t.Errorf("asked %v: %v", asked, got)
			}
			t.Log(got.GetReason())
			if now := target.Ask(t, "now"); now != "secret 5, value 7" {
				t.Errorf("the setuid program says %q", now)
			}
			if err := unix.Kill(target.PID, 0); err != nil {
				t.Error(err)
			}
		})
	}
}
