// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// amounts are limits of all fields that can have one, which internal/testing/targets/programs/stubborn.c
// exceeds soon.
var amounts = map[string]float64{
	"wall_seconds": 0.2, "cpu_seconds": 0.05, "cores_peak": 0.01, "processes.peak": 9, "processes.total": 12,
	"memory.resident_peak_bytes": 1e8, "memory.anonymous_peak_bytes": 1e8, "memory.virtual_peak_bytes": 3e8, cgroupField: 1e8,
	"io.read_bytes": 1e7, "io.written_bytes": 1e7, "io.read_calls": 100, "io.written_calls": 100,
	"io.storage_read_bytes": 1e6, "io.storage_written_bytes": 1e6,
	diskBytes: 4e6, diskFiles: 50,
}

// TestHardLimits: nothing is left of a tree that ignores signals and hides, whichever limit
// it exceeds, and others live on. bench/limits says how soon.
func TestHardLimits(t *testing.T) { hardLimits(t, Options{WithoutKernel: true, NoGroup: true}) }

func hardLimits(t *testing.T, options Options) {
	t.Helper()
	program := targets.Build(t, "../../internal/testing/targets/programs/stubborn.c")
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Process.Signal(unix.Signal(0)); err != nil {
			t.Errorf("a process that is none of the command's: %v", err)
		}
		_ = other.Process.Kill()
		_ = other.Wait() // killed
	}()
	for field := range new(reading).values() {
		if field == cgroupField && options.NoGroup {
			continue // TestLimitOfTheUnknown
		}
		if strings.HasPrefix(field, "io.storage_") && inMemory(t) {
			continue // what is written there goes to no storage
		}
		t.Run(field, func(t *testing.T) {
			most, known := amounts[field]
			if !known {
				t.Fatal("no limit to exceed")
			}
			options := options
			options.helperPatience = patience.Limit
			options.Limits = []Limit{{Field: field, Max: most}}
			if a, err := New(options); err == nil {
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
			} else if errors.Is(err, ErrNotLimitable) && (field == cgroupField || field == "processes.total") {
				return // no memory controller, or no process connector: that it is said is the promise
			} else {
				t.Fatal(err)
			}
			hardLimit(t, options, program)
		})
	}
}

// inMemory says whether temporary files are kept in memory.
func inMemory(t *testing.T) bool {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Type == unix.TMPFS_MAGIC
}

// hardLimit has the program exceed a limit when all of its processes have begun: a higher
// one where a slow machine let them begin too late.
func hardLimit(t *testing.T, options Options, program string) {
	t.Helper()
	for limit := options.Limits[0]; !exceed(t, options, program); options.Limits = []Limit{limit} {
		if limit.Max *= 2; limit.Max > 1000*amounts[limit.Field] {
			t.Fatal("it never had all of its processes")
		}
	}
}

// exceed reports whether all processes had begun when the limit ended them.
func exceed(t *testing.T, options Options, program string) (all bool) {
	t.Helper()
	file, limit := filepath.Join(t.TempDir(), "lives"), options.Limits[0]
	if strings.HasPrefix(limit.Field, "disk.") {
		options.Directories = []string{filepath.Dir(file)}
	}
	a, exit := mustRun(t, options, program, file, limit.Field, fmt.Sprintf("%.3f", limit.Max))
	if exit.Signal != unix.SIGKILL || a.Exit.Type != account.ExitLimits || a.Exit.Signal != "SIGKILL" {
		t.Errorf("the command ended with %+v, the account says %+v", exit, a.Exit)
	}
	if len(a.Exit.Limits) != 1 || !strings.HasPrefix(a.Exit.Limits[0], limit.Field+": ") || !strings.HasSuffix(a.Exit.Limits[0], " > "+plain(limit.Max)) {
		t.Errorf("limits %q", a.Exit.Limits)
	}
	if *a.Processes.Left != 0 {
		t.Errorf("%d processes are left", *a.Processes.Left)
	}
	lives, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(lives) == 0 {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	all = true
	for i := range 5 {
		pid := int(binary.NativeEndian.Uint64(lives[8+16*i:]))
		all = all && pid != 0
		if stat, err := procid.ReadStat(pid); pid != 0 && err == nil && !stat.Zombie() {
			t.Errorf("process %d with the id %d has not ended: %+v", i, pid, stat)
		}
	}
	return all
}

// exceeding makes a shell exceed [exceeded], at a moment of its own.
const exceeding = "; head -c 20000000 /dev/zero >/dev/null; "

var exceeded = []Limit{{Field: "io.read_bytes", Max: 1e7}}

// TestGrace: whoever ends at SIGTERM has the time for it, and its own code.
func TestGrace(t *testing.T) {
	options := Options{WithoutKernel: true, NoGroup: true, Grace: time.Hour, Limits: exceeded}
	a, exit := mustRun(t, options, "sh", "-c", `trap "exit 5" TERM`+exceeding+`while :; do sleep 0.01; done`)
	if exit.Code != 5 || a.Exit.Type != account.ExitLimits || *a.Exit.Code != 5 {
		t.Errorf("the command ended with %+v, the account says %+v", exit, a.Exit)
	}
}

// TestLimitOfTheUnknown: what nothing measures cannot be limited, and no command is started
// with such a limit.
func TestLimitOfTheUnknown(t *testing.T) {
	options := Options{WithoutKernel: true, NoGroup: true, Limits: []Limit{{Field: cgroupField, Max: 1e9}}}
	if a, err := New(options); !errors.Is(err, ErrNotLimitable) {
		t.Errorf("error %v", err)
		if err == nil {
			_ = a.Close()
		}
	}
}

// TestNameOfHelpers: a process that is called as helpers of this one are, and has lost its parent, is ended with
// the others.
func TestNameOfHelpers(t *testing.T) {
	for _, name := range []string{"exe", inherit.WitnessArg} {
		t.Run(name, func(t *testing.T) { endsNamed(t, name) })
	}
}

func endsNamed(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	options := Options{WithoutKernel: true, NoGroup: true, Limits: exceeded}
	seen := "; until ls -l /proc/$PPID/fd | grep -q /proc/$(cat " + dir + "/pid)/io; do sleep 0.01; done"
	record, _ := mustRun(t, options, "sh", "-c", "(setsid "+dir+"/"+name+" 1000 & echo $! >"+dir+"/pid)"+seen+exceeding+"sleep 1000")
	text := files.Read(t, filepath.Join(dir, "pid"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() {
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Errorf("process %d (%s) lives on: %+v", pid, stat.Comm, record.Exit)
	}
}
