// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// knownAs lists the names by which people know the program of a process, beside that
// of its file: the path that was executed, a symbolic link perhaps, and what ps(1)
// shows.
func knownAs(pid int) (names []string) {
	if path := proc.ExecutedAs(pid); path != "" {
		names = append(names, path, filepath.Base(path))
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		title, _, _ := bytes.Cut(line, []byte{0})
		if words := strings.Fields(string(title)); len(words) > 0 { // "redis-server *:6379", "nginx: worker process"
			names = append(names, filepath.Base(strings.TrimSuffix(words[0], ":")))
		}
	}
	if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		names = append(names, strings.TrimSuffix(string(comm), "\n"))
	}
	return names
}

// ProgramNames lists the names by which people know the program of a process: that of
// its file, the path that was executed and its base name, and what ps(1) shows. It has
// those that this user may read.
func ProgramNames(pid int) []string {
	names := knownAs(pid)
	if path := procid.Executable(pid); path != "" {
		names = append(names, filepath.Base(path))
	}
	return names
}

// InspectExecuted is Inspect of the program that a process executes, whoever asks: what starting
// it gains is that process' affair, and whether it may be executed is not asked, for it is.
func InspectExecuted(pid int) Inspection {
	i := Inspection{Path: procid.Path(pid, "exe")}
	by, err := starterOf(pid)
	if err != nil {
		i.Kind = KindMissing // it has ended
		return i
	}
	if i.Kind = pathKind(i.Path); i.Kind == KindUnknown || i.Kind == KindNotExecutable {
		i.inspectFile(by, 0)
	}
	return i
}
