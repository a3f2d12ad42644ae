// SPDX-License-Identifier: Apache-2.0

//go:build e2e || vm || site

package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// attune is the command under test.
const attune = "../../../bin/attune"

// run runs a command to its end and returns its standard output.
func run(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(patience.Context(t), command[0], command[1:]...)
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		t.Fatalf("run %q: %v\n%s", command, err, stderr.String())
	}
	return string(stdout)
}

// mustReadReport reads a report, which must be what its schema says.
func mustReadReport(t *testing.T, file string) (r report.Report) {
	t.Helper()
	data := files.Read(t, file)
	mustMatchSchema(t, data)
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func mustMatchSchema(t *testing.T, data []byte) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/reference/report.schema.json")
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

// unjudged says whether the program has ended before a change was judged.
func unjudged(r report.Report) bool {
	return slices.ContainsFunc(r.Changes, func(c report.Change) bool { return c.Verdict == report.VerdictUnjudged })
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}
