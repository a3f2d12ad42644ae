// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// Valgrind and the user mode of QEMU do not execute a program's code, but translate what
// they read where it is mapped. The kernel writes its breakpoints there too, and the
// program ends by SIGTRAP.

// emulator is what the emulators of QEMU's user mode are called, as no other of its tools.
var emulator = regexp.MustCompile(`^qemu-(aarch64|alpha|arm|cris|hexagon|hppa|i386|loongarch|m68k|microblaze|mips|nios2|or1k|ppc|riscv|s390x|sh4|sparc|x86_64|xtensa)[a-z0-9_]*(-static)?$`)

// translatorOf says what translates the code of a process; "": the processor executes it.
func translatorOf(pid int) string { return translatorAt(procid.Executable(pid)) }

// translatorAt is translatorOf for an executed file, such as
// /usr/libexec/valgrind/memcheck-amd64-linux.
func translatorAt(exe string) string {
	dir, name := filepath.Split(exe)
	switch {
	case filepath.Base(dir) == "valgrind" && strings.HasSuffix(name, "-linux"):
		return "Valgrind"
	case emulator.MatchString(name):
		return "QEMU"
	}
	return ""
}

// findTranslators returns the processes whose code is translated, with what does so.
func findTranslators() (map[int]string, error) {
	pids, err := procid.List()
	found := make(map[int]string)
	for _, pid := range pids {
		if tool := translatorOf(pid); tool != "" {
			found[pid] = tool
		}
	}
	return found, err
}

// mappedBy says whether a process has mapped the file, or one with its inode number on
// another device: btrfs and overlayfs tell stat(2) of another device than the maps file.
// QEMU maps code so that it cannot be executed.
func (t *target) mappedBy(pid int) bool {
	mappings, err := objfile.Mappings(pid)
	return err == nil && slices.ContainsFunc(mappings, func(m objfile.Mapping) bool { return m.Inode == t.id.number })
}

// toolNames are how the files begin by which translators are executed.
var toolNames = strings.Fields("qemu- memcheck- cachegrind- callgrind- helgrind- drd- massif- dhat- lackey- none- exp-")

// translatorWatch is told of translators that are started while something is attached.
type translatorWatch struct {
	ended sync.WaitGroup
	stop  context.CancelFunc // nil: it has not begun
}

// start begins to call met with each translator that is there, or starts. It returns at
// once: what takes 20 ms to load must not make a point late. log may be nil.
func (w *translatorWatch) start(met func(pid int, tool string), log *slog.Logger) {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.ended.Go(func() {
		if err := watchTranslators(ctx, met); err != nil && log != nil {
			log.Warn("programs under Valgrind or QEMU that start from now on are ended by kernel probes", "error", err)
		}
	})
}

func (w *translatorWatch) close() {
	if w.stop != nil {
		w.stop()
	}
	w.ended.Wait()
}

// watchTranslators returns when ctx ends.
func watchTranslators(ctx context.Context, met func(pid int, tool string)) error {
	events, err := procevent.New(procevent.Options{RingBytes: uint32(16 * os.Getpagesize()), MaxProcesses: 1, NodeWide: true})
	if err != nil {
		return err
	}
	var names []procevent.Name
	for _, tool := range toolNames {
		names = append(names, procevent.Name{Text: tool, Beginning: true, UID: procevent.AnyUser})
	}
	err = events.Want(names)
	if err == nil {
		there, _ := findTranslators() // of those that come later there are events
		for pid, tool := range there {
			met(pid, tool)
		}
		err = events.Run(ctx, func(e procevent.Event) {
			if tool := translatorOf(e.PID); tool != "" {
				met(e.PID, tool)
			}
		})
	}
	return errors.Join(err, events.Close())
}
