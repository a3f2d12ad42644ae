// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/golden"
)

const knobsHead = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Knobs of the operating system

What ` + "`attune tune PID NAME=VALUE`" + ` and a tunlet's ` + "`SystemSetting`" + ` change: from outside, at
once, without stopping the process. Made from the table that the code goes by
with ` + "`go test ./controller/actuate/system -update`" + `.

A knob of threads, sockets or pipes applies to every one that there is; write
` + "`NAME@NUMBER`" + ` for one thread or descriptor. Numbers may end in K, M, G or T
(powers of 1024). Only the owner of a process and root may change it; sockets and
pipes need what a debugger needs as well (` + "`kernel.yama.ptrace_scope`" + `).

Every change is checked, written down with the old value, made and read back.
What this user could not take back is refused, unless ` + "`--no-undo`" + ` says that it
need not be. A value that somebody else has changed since is left as it is. A limit
that the program has passed since is not put back for as long as that would kill it, or
it got no more memory, threads or files. A program that the process executes meanwhile
gets back what it would have had, as soon as that is noticed.

Sessions of the [node service](attuned.md) are without CAP_NET_ADMIN, whoever registered the
program ([0058](../design/0058-less-to-take.md)): what needs it is refused there, and so is
what could not be set back without it. Root makes such a change with ` + "`attune tune`" + ` on the
node, or with ` + "`attune run`" + `. They have CAP_SYS_NICE and CAP_SYS_RESOURCE, and write control
groups as root does; with [narrow.conf](attuned.md#its-unit) neither ` + "`thread.policy`" + ` of fifo
and rr nor control groups.

| Name | Applies to | Values | What it does | Privilege | Undo |
|---|---|---|---|---|---|
`

const knobsFoot = `
Not covered: sockets and pipes that are opened after the change; children that
inherited a changed limit, descriptor or scheduling; descriptors of threads that
do not share them; a process whose first thread has ended keeps its sockets and
pipes out of reach. Undoing an affinity keeps a process to the CPUs it had, also
if its cpuset grows later.
`

// The reference page is made from the table that the code goes by.
func TestKnobsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(knobsHead)
	for _, k := range Knobs() {
		privilege := k.Privilege
		if privilege == "" {
			privilege = "none"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n",
			k.Name, k.On, k.Values, k.Description, privilege, k.Undo)
	}
	page.WriteString(knobsFoot)
	golden.File(t, "../../../docs/reference/knobs.md", []byte(page.String()))
}
