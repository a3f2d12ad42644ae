// SPDX-License-Identifier: Apache-2.0

package objectivefiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// program starts one that copies its input to its output, and makes it a member of a set.
func program(t *testing.T, set *member.Set, output *os.File) io.Writer {
	t.Helper()
	cmd := exec.Command("cat")
	cmd.Stdout, cmd.Stderr = output, output
	return start(t, set, cmd)
}

// start starts a program that ends with its input, and makes it a member of a set.
func start(t *testing.T, set *member.Set, cmd *exec.Cmd) io.Writer {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSPC) {
		t.Skip("user namespaces are forbidden here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	stat, err := procid.ReadStat(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	set.Add(member.New(&attunev1.Process{
		Handle: uint64(cmd.Process.Pid), Identity: &attunev1.ProcessIdentity{Pid: int32(cmd.Process.Pid), StartTicks: stat.StartTicks},
	}, member.Options{}))
	return input
}

// measuring returns a Meter for processes of this user, and what it says.
func measuring(set *member.Set, change func(*Options)) (m *Meter, parts chan *attunev1.ObjectivePart) {
	parts = make(chan *attunev1.ObjectivePart, 10000)
	options := Options{
		Members: set, User: uint32(os.Geteuid()), Foreign: func(int) error { return nil },
		Offer: func(m *attunev1.PublishRequest) bool { parts <- m.GetObjective(); return true },
	}
	if change != nil {
		change(&options)
	}
	return New(options), parts
}

// What processes write to a file is measured, by whatever name they have it, also of one
// that comes later; what stands there already does not count.
func TestMeasure(t *testing.T) {
	for _, text := range []string{"value output:^speed ([0-9]+)", "value file:PATH:^speed ([0-9]+)", "value file:log:^speed ([0-9]+)"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte("speed 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer output.Close()
			set := member.NewSet()
			m, parts := measuring(set, nil)
			m.Measure(t.Context(), strings.ReplaceAll(text, "PATH", path))
			input := program(t, set, output)
			patience.Until(t, "a value", func() bool {
				fmt.Fprintln(input, "speed 42")
				select {
				case part := <-parts:
					if part.GetValue() != 42 {
						t.Errorf("it says %v", part)
					}
					return true
				default:
					return false
				}
			})
			m.Measure(t.Context(), "")
		})
	}
}

// What goes elsewhere, or is not the user's, is not read; it is said why.
func TestRefused(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when all rows have ended
		read.Close()
		write.Close()
		file.Close()
	})
	alone := func(o *Options) { o.Foreign = func(int) error { return os.ErrPermission } }
	rows := map[string]struct {
		text   string
		output *os.File
		change func(*Options)
		says   string
	}{
		"a pipe":          {"output:x", write, nil, "is a pipe"},
		"somebody else's": {"output:x", file, func(o *Options) { o.User++ }, "is a file of user"},
		"one left alone":  {"file:log:x", file, alone, "no process was found that has log open: it cannot be looked at in a process that is left alone: permission denied;"},
		"its output":      {"output:x", file, alone, "the output cannot be looked at in a process that is left alone: permission denied:"},
		"no such file":    {"file:other:x", file, nil, "no process was found that has other open"},
		"a command":       {"command:id", file, nil, "nodes do not measure command:"},
		"nonsense":        {"output:(", file, nil, "missing closing"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := member.NewSet()
			program(t, set, row.output)
			m, parts := measuring(set, row.change)
			m.Measure(t.Context(), row.text)
			if part := <-parts; !strings.Contains(part.GetTrouble(), row.says) {
				t.Errorf("it says %v, want %q", part, row.says)
			}
		})
	}
}

// looking returns files that are looked for among the processes of a set, each time more is called.
func looking(t *testing.T, set *member.Set, text string) *files {
	t.Helper()
	spec, err := objective.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &files{
		options: Options{Members: set, User: uint32(os.Geteuid()), Foreign: func(int) error { return nil }},
		spec:    spec, say: func(string) {}, looked: map[uint64]bool{},
	}
}

// found closes what was found, and says how many files these were.
func found(all []*os.File) int {
	for _, file := range all {
		file.Close()
	}
	return len(all)
}

// The output of a container is a file that was opened before the container was made.
func TestOutputOfAContainer(t *testing.T) {
	output, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd := exec.Command("cat")
	cmd.Stdout = output
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	set := member.NewSet()
	start(t, set, cmd)
	f := looking(t, set, "output:x")
	if n := found(f.more()); n != 1 {
		t.Errorf("%d files, refused: %q", n, f.refused)
	}
}

// A file is found among many that a process has open, and where there may be more, that is said.
func TestManyDescriptors(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	other, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	cmd := exec.Command("cat")
	cmd.ExtraFiles = append(slices.Repeat([]*os.File{other}, mostOpen-4), log) // beside the first three
	set := member.NewSet()
	start(t, set, cmd)
	f := looking(t, set, "file:log:x")
	if n := found(f.more()); n != 1 {
		t.Errorf("%d files", n)
	}
	f = looking(t, set, "file:another:x")
	if n, says := found(f.more()), f.nothing(); n != 0 || !strings.Contains(says, "beyond") {
		t.Errorf("%d files; it says %q", n, says)
	}
}

// A program may redirect its output at any time.
func TestRedirectedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command("sh", "-c", "read go; exec >"+path+" 2>&1; read end")
	set := member.NewSet()
	input := start(t, set, cmd)
	f := looking(t, set, "output:x")
	if n := found(f.more()); n != 0 {
		t.Errorf("%d files before", n)
	}
	fmt.Fprintln(input)
	patience.Until(t, "its output", func() bool { return found(f.more()) == 2 })
	if n := found(f.more()); n != 0 {
		t.Errorf("%d files again", n)
	}
}
