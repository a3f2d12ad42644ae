// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// checkTranslated refuses a file that a process under Valgrind maps. The kernel puts its
// breakpoint into every process that maps the file; Valgrind does not execute that code,
// but translates what it reads there, and the breakpoint ends its program by SIGTRAP.
// One that comes while the probe is there is not protected.
func (t *target) checkTranslated(name string) error {
	pids, err := procid.List()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if underValgrind(pid) && t.mappedBy(pid) {
			return &bpf.UnsupportedError{
				Feature: "uprobe in " + name,
				Reason:  fmt.Sprintf("process %d runs under Valgrind and has mapped it: the kernel's breakpoint would end it", pid),
				Remedy:  "ask again when it has ended",
			}
		}
	}
	return nil
}

// underValgrind says whether a process executes a tool of Valgrind, such as
// /usr/libexec/valgrind/memcheck-amd64-linux, in which the program's code lies.
func underValgrind(pid int) bool {
	tool, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	tool = strings.TrimSuffix(tool, " (deleted)")
	return err == nil && filepath.Base(filepath.Dir(tool)) == "valgrind" && strings.HasSuffix(tool, "-linux")
}

// mappedBy says whether a process has the file's code in memory, or that of one with its
// inode number on another device: btrfs and overlayfs tell stat(2) of another device than
// the maps file.
func (t *target) mappedBy(pid int) bool {
	mappings, err := objfile.Mappings(pid)
	return err == nil && slices.ContainsFunc(mappings, func(m objfile.Mapping) bool {
		return m.Exec && m.Inode == t.id.number
	})
}
