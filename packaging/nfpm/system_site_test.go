// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package nfpm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// repository is where scripts run.
const repository = "../.."

// system is one that runs in namespaces of its own, with Debian's systemd.
type system struct {
	root string // its directory here
	init int    // its first process, as it is called here
}

// boot starts a system of Debian bookworm that has Python and nothing of Attune. It
// ends with the test.
func boot(t *testing.T) *system {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	must(t, "cp", "-a", bookworm(t), root)
	cmd := exec.Command(repository+"/scripts/boot", root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	unshare := strings.TrimSpace(line)
	s := &system{root: root}
	patience.Until(t, "the system's first process", func() bool {
		children, _ := os.ReadFile("/proc/" + unshare + "/task/" + unshare + "/children")
		first := strings.TrimSpace(string(children))
		s.init, err = strconv.Atoi(first)
		program, _ := os.Readlink("/proc/" + first + "/exe")
		return err == nil && filepath.Base(program) == "systemd" // before, it makes its namespaces
	})
	state := ""
	patience.Until(t, "the system", func() bool {
		// What of Debian does not start in namespaces is not looked at.
		state, _ = s.try(t, "sh", "-c", "sleep 0.2; systemctl is-system-running")
		return state == "running" || state == "degraded"
	})
	t.Logf("the system is %s", state)
	return s
}

// bookworm returns the directory of a fresh system, which is kept for other runs.
func bookworm(t *testing.T) string {
	t.Helper()
	const kept = repository + "/.cache/bookworm"
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	mirror := cmp.Or(os.Getenv("ATTUNE_DEBIAN_MIRROR"), "http://deb.debian.org/debian")
	made := filepath.Join(t.TempDir(), "root")
	must(t, "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,python3-minimal", "bookworm", made, mirror)
	must(t, "sh", "-c", "rm -rf $1.new && cp -a $0 $1.new", made, kept)
	if err := os.Rename(kept+".new", kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// try runs a command in the system and returns what it printed.
func (s *system) try(t *testing.T, command ...string) (string, error) {
	t.Helper()
	out, err := s.command(t.Context(), command...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must runs a command in the system that has to succeed.
func (s *system) must(t *testing.T, command ...string) string {
	t.Helper()
	out, err := s.try(t, command...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return out
}

func (s *system) command(ctx context.Context, command ...string) *exec.Cmd {
	enter := []string{"-t", strconv.Itoa(s.init), "-m", "-u", "-i", "-n", "-p", "-C", "env", "-i",
		"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	return exec.CommandContext(ctx, "nsenter", append(enter, command...)...)
}

// files lists all that there is in the system but its users', with what is in files of
// the configuration. Left out is what the kernel makes.
func (s *system) files(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, s.root)
		switch name {
		case "/proc", "/sys", "/dev", "/run", "/home", "/tmp", "/packages":
			return fs.SkipDir
		}
		files[name] = ""
		if strings.HasPrefix(name, "/etc/") && !strings.HasSuffix(name, "-") && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			files[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// must runs a command here.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, &stdout, &stderr)
	}
	return strings.TrimSpace(stdout.String())
}
