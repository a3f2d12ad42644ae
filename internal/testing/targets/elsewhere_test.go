// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestCompiledElsewhere: who compiles is asked for what only this test sees; what it cannot
// compile is compiled here.
func TestCompiledElsewhere(t *testing.T) {
	t.Setenv("ATTUNE_TARGETS", t.TempDir()) // nothing was compiled before, in another run of this test either
	mu.Lock()
	clear(built)
	mu.Unlock()
	folder := t.TempDir()
	t.Setenv("ATTUNE_COMPILER", folder)
	asked := make(chan string, 10)
	path := "PATH=" + os.Getenv("PATH")
	go func() { // as scripts/test-vm does
		for t.Context().Err() == nil {
			asks, _ := filepath.Glob(filepath.Join(folder, "*", "ask"))
			for _, ask := range asks {
				compile := exec.Command("sh", ask)
				compile.Dir, compile.Env = folder, []string{path, "OUT=" + filepath.Dir(ask)}
				said, _ := compile.CombinedOutput()
				asked <- string(said)
				_ = os.Remove(ask)
				_ = os.WriteFile(filepath.Join(filepath.Dir(ask), "done"), nil, 0o600)
			}
			time.Sleep(elsewhereInterval)
		}
	}()
	library := BuildText(t, "answer", "int answer(void) { return 42; }\n", "-shared", "-fPIC")
	<-asked
	mustDo := func(program string) {
		t.Helper()
		if said, err := exec.Command(program).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	const plain = "int main(void) { return 0; }\n"
	Program(t, "timeouts", `-DTEXT="it's a 'word'"`) // which includes what lies beside it
	mustDo(BuildText(t, "with", "int answer(void);\nint main(void) { return answer() != 42; }\n", library))
	for range 2 {
		if said := <-asked; said != "" {
			t.Errorf("a text is not compiled elsewhere: %s", said)
		}
	}

	only := t.TempDir()
	if err := WriteProgram(filepath.Join(only, "only-here"), []byte("#!/bin/sh\nexec gcc \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", only+":"+os.Getenv("PATH"))
	source := filepath.Join(only, "here.c")
	files.Write(t, source, plain, 0o600)
	mustDo(BuildWith(t, "only-here", "here", source))
	if said := <-asked; !strings.Contains(said, "only-here") {
		t.Errorf("elsewhere: %q", said)
	}
}
