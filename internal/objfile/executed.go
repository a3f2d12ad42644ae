// SPDX-License-Identifier: Apache-2.0

package objfile

import "github.com/attune-hpc/attune/internal/procid"

// InspectExecuted is Inspect of the program that a process executes. Whether it may be executed
// is not asked: it is, and the user who asks may be another one.
func InspectExecuted(pid int) Inspection {
	i := Inspection{Path: procid.Path(pid, "exe")}
	if i.Kind = pathKind(i.Path); i.Kind == KindUnknown || i.Kind == KindNotExecutable {
		i.inspectFile(0)
	}
	return i
}
