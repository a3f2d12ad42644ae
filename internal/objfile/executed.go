// SPDX-License-Identifier: Apache-2.0

package objfile

import "github.com/attune-hpc/attune/internal/procid"

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
