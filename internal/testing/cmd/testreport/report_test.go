// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/files"
)

const (
	good = `{"Action":"run","Package":"github.com/attune-hpc/attune/a","Test":"TestOne"}
{"Action":"output","Package":"github.com/attune-hpc/attune/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"pass","Package":"github.com/attune-hpc/attune/a","Test":"TestOne/part","Elapsed":1}
{"Action":"pass","Package":"github.com/attune-hpc/attune/a","Test":"TestOne","Elapsed":1.5}
{"Action":"pass","Package":"github.com/attune-hpc/attune/a","Elapsed":1.6}
`
	parallel = `{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"github.com/attune-hpc/attune/a","Test":"TestMany"}
{"Time":"2026-01-01T00:00:01Z","Action":"cont","Package":"github.com/attune-hpc/attune/a","Test":"TestMany"}
{"Time":"2026-01-01T00:00:43Z","Action":"pass","Package":"github.com/attune-hpc/attune/a","Test":"TestMany","Elapsed":0.1}
`
	skips = `{"Action":"output","Package":"github.com/attune-hpc/attune/a","Test":"TestTwo/x","Output":"    a_test.go:3: no such tool\n"}
{"Action":"output","Package":"github.com/attune-hpc/attune/a","Test":"TestTwo/x","Output":"    --- SKIP: TestTwo/x (0.00s)\n"}
{"Action":"skip","Package":"github.com/attune-hpc/attune/a","Test":"TestTwo/x","Elapsed":0}
`
	fails = `{"Action":"fail","Package":"github.com/attune-hpc/attune/a","Test":"TestThree","Elapsed":0}
{"Action":"fail","Package":"github.com/attune-hpc/attune/a","Elapsed":0}
`
	unbuilt = `compiler: no
{"Action":"fail","Package":"github.com/attune-hpc/attune/b","Elapsed":0}
`
	steps = "build\tpassed\t10.2\t12\n"
)

func TestReport(t *testing.T) {
	for _, row := range []struct {
		name, steps, events, allowed string
		status                       int
		says                         []string
	}{
		{"passes", steps, good, "", 0, []string{"1.5 s  race       a TestOne", "\n1 passed, 0 failed, 0 skipped\n", "passed        10      12"}},
		{"parallel parts", steps, parallel, "", 0, []string{"42.0 s  race       a TestMany"}},
		{"a step left out", steps + "site\tnot run\tneeds root\n", good, "", 0, []string{"not run  needs root"}},
		{"a step failed", "build\tFAILED\t1\t1\n", good, "", 1, []string{"FAILED"}},
		{"unknown skip", steps, good + skips, "", 1, []string{"NOT ALLOWED  a TestTwo/x: a_test.go:3: no such tool"}},
		{"known skip", steps, good + skips, "# why\na\tTestTwo\tfor a reason\n", 0, []string{"allowed      a TestTwo/x: for a reason", "1 skipped"}},
		{"a test failed", steps, good + fails, "", 1, []string{"race       a TestThree", "1 passed, 1 failed"}},
		{"a package does not build", steps, good + unbuilt, "", 1, []string{"race       b", "1 passed, 1 failed"}},
		{"nothing ran", steps, "", "", 1, []string{"no test ran"}},
		{"a step without times", "build\tpassed\n", good, "", 2, nil},
		{"a time that is none", "build\tpassed\tx\t1\n", good, "", 2, nil},
		{"a skip without reason", steps, good, "a\tTestTwo\n", 2, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := t.TempDir()
			for name, text := range map[string]string{"steps": row.steps, "race.json": row.events, "allowed": row.allowed} {
				files.Write(t, filepath.Join(folder, name), text, 0o600)
			}
			status, said := output(t, folder, filepath.Join(folder, "allowed"))
			if diff := cmp.Diff(row.status, status); diff != "" {
				t.Errorf("status (-want +got):\n%s\n%s", diff, said)
			}
			for _, want := range row.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

// output runs the command and returns its status and what it printed.
func output(t *testing.T, args ...string) (int, string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	status := run(args)
	os.Stdout = stdout
	said := files.Read(t, file.Name())
	return status, string(said)
}
