// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm || site

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/attune-hpc/attune/analyzer/report"
)

// attune is the command under test.
const attune = "../../bin/attune"

// run runs a command, for a minute at most, and returns its standard output.
func run(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("run %q: %v\n%s", command, err, stderr.String())
	}
	return string(stdout)
}

// runTuned runs a command under attune and returns its standard output and the
// report, which must be what its schema says.
func runTuned(t *testing.T, flags []string, command ...string) (string, report.Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{attune, "run", "--quiet", "--report", file}, flags...)
	stdout := run(t, append(append(args, "--"), command...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mustMatchSchema(t, data)
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return stdout, r
}

func mustMatchSchema(t *testing.T, data []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/reference/report.schema.json")
	if err != nil {
		t.Fatalf("compile the schema: %v", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("decode the report: %v", err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the report does not match its schema: %v", err)
	}
}

// tries is how often a program is run before a test says that it is not tuned.
// One run cannot tell: of the useful changes up to one in twenty is undone, see
// analyzer/core's simulator, and who shares the machine can hide what is gained.
const tries = 3

// mustBeTuned runs something until it has no complaint, or has had its tries.
func mustBeTuned(t *testing.T, once func() (complaint string)) {
	t.Helper()
	for i := 1; ; i++ {
		complaint := once()
		switch {
		case complaint == "":
			return
		case i == tries:
			t.Error(complaint)
			return
		}
		t.Logf("try %d: %s", i, complaint)
	}
}

// unlessGained is the complaint where a tunlet's changes were kept in another
// number of processes, or the program's rate did not grow so many times.
func unlessGained(r report.Report, tunlet string, processes int, before, after, least float64) string {
	if kept := keptIn(r, tunlet); kept != processes || after < least*before {
		return fmt.Sprintf("%s: kept in %d processes, want %d; %.0f/s without, %.0f with attune, want %.1f times more; changes %+v",
			tunlet, kept, processes, before, after, least, r.Changes)
	}
	return ""
}

// keptIn counts the processes in which a tunlet's changes were kept.
func keptIn(r report.Report, tunlet string) int {
	processes := map[int]bool{}
	for _, c := range r.Changes {
		if c.Tunlet == tunlet && c.Verdict == report.VerdictKept {
			processes[c.Process] = true
		}
	}
	return len(processes)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}
