// SPDX-License-Identifier: Apache-2.0

// Package gobuild builds the commands that a package's tests run, once for all of
// them, and under the race detector where the tests are. A race in a command fails
// the tests, whoever started the command.
package gobuild

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/longgate"
)

// Command is a command that tests run.
type Command struct {
	// Package is what go build takes; its folder's name becomes that of the binary.
	Package string
	// Flags are given to go build as well.
	Flags []string
	// LongGate has it built for tests whose subject is not the start gate, see package
	// longgate.
	LongGate bool
	// Made is what make has built of it, which is taken where there is no Go, as in
	// the virtual machines of make test-vm. Empty: it is needed.
	Made string
}

// Main builds commands into a directory of their own, and runs the tests after setUp,
// which may add to it. It returns the tests' exit code, 1 where a command had a race.
func Main(m *testing.M, setUp func(bin string) error, commands ...Command) int {
	bin, err := os.MkdirTemp("", "bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	races := filepath.Join(bin, "races")
	variable, value, _ := strings.Cut(settings(races), "=")
	err = errors.Join(os.Chmod(bin, 0o755), os.Mkdir(races, 0o777), os.Chmod(races, 0o777),
		os.Setenv(variable, value), build(bin, commands), setUp(bin))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if reportRaces(os.Stderr, races) {
		code = max(code, 1)
	}
	return code
}

// settings is the environment that has the race detectors of commands write into a
// directory: many a command has no standard error that a test sees. A command does
// not wait a second for races at its end, as tests await that.
func settings(races string) string {
	return "GORACE=atexit_sleep_ms=0 log_path=" + filepath.Join(races, "race")
}

// build builds commands into a directory.
func build(bin string, commands []Command) error {
	if _, err := exec.LookPath("go"); err != nil {
		return copyMade(bin, commands)
	}
	overlay, err := os.MkdirTemp("", "overlay")
	if err != nil {
		return err
	}
	defer os.RemoveAll(overlay)
	for _, c := range commands {
		var gate []string
		if c.LongGate {
			if gate, err = longgate.BuildFlags(overlay); err != nil {
				return err
			}
		}
		cmd := exec.Command("go", slices.Concat([]string{"build", "-buildvcs=false", "-o", bin + "/"}, gate, flags(), c.Flags, []string{c.Package})...)
		cmd.Env = append(os.Environ(), cgo)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", c.Package, err, out)
		}
	}
	return nil
}

// copyMade takes what make has built.
func copyMade(bin string, commands []Command) error {
	for _, c := range commands {
		if out, err := exec.Command("cp", c.Made, bin).CombinedOutput(); err != nil {
			return fmt.Errorf("take %s, there is no Go here: %w: %s", c.Made, err, out)
		}
	}
	return nil
}

// reportRaces shows what race detectors have written into a directory, and returns
// whether there is anything.
func reportRaces(to io.Writer, races string) bool {
	files, err := os.ReadDir(races)
	if err != nil {
		fmt.Fprintln(to, err)
		return true
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(races, f.Name()))
		fmt.Fprintf(to, "%s: %v\n%s\n", f.Name(), err, text)
	}
	return len(files) > 0
}
