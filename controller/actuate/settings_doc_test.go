// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the reference page")

const settingsPage = "../../docs/reference/settings.md"

const settingsHead = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Named settings

What tunlets (` + "`NamedSetting`" + `) and ` + "`attune tune PID NAME=VALUE`" + ` may change by name in the
libraries of a running process. Made from the table that the code goes by with
` + "`go test ./controller/actuate -update`" + `.

Every change is checked, written down, made and read back. A process without the
library, a library that does not let the value be changed, and a variable that
cannot be found for certain are refused, with the reason.

`

const settingsTail = `
*Variables without symbol* (way in: written in place) are found by starting a
process of our own that loads the same file, as the user whose process is
changed, telling it three values in turn, and looking for the one word of its
data that follows ([0011](../design/0011-variables-without-symbol.md)). That is
done once per file, and kept by build id in ` + "`~/.cache/attune/variables`" + `
(root: ` + "`/var/cache/attune/variables`" + `). It does not work for a file that has
another name or content here than in the process: in containers, or after an
upgrade; nor for a library that is linked into the program.

*Go programs* need no such process: the two words are found by the symbol
` + "`runtime.gcController`" + `, or, where the program is stripped, as the only place of its
data that holds a percentage, a memory limit, and the least heap that follows from
the percentage. Anything else is refused, with ` + "`GOGC=off`" + ` too. Built by Go 1.19
(Debian's nats-server) and by Go 1.26, both were found at once, in 20 ms with all the
rest. The program's own runtime keeps a memory limit (GOMEMLIMIT) whatever the
percentage is.

*Calls* are made by DMLib when a thread comes to an allocation hook, within two
seconds. Without DMLib, a thread is stopped for each where it could itself have
called the library (ptrace(2)); so they are undone after a controller that died.
OpenMP's settings belong to the thread that begins a parallel region, which is
the program's first one here; without DMLib they are changed while it is in none.

*Streams.* ` + "`glibc.stdio.size@7=1M`" + ` is about the stream that writes to descriptor 7.
It gets a buffer that Attune maps, when what the old one holds is written; not a
byte is lost, doubled or moved. A stream that is made to hold back more than
before is looked at 40 times a second, and made to write what it has held for
0.1 s, unless its reader is behind: by ` + "`attune run`" + ` and ` + "`attune attach`" + `, or by
` + "`attune tune`" + `, which therefore stays until it is told to end, and then takes the
change back. If it is killed, output may be seen late until ` + "`attune undo`" + `.
At exit(3) the C library writes what is held, as always. A process that is killed,
crashes, or calls _exit(2) loses what its streams hold: with a larger buffer that
can be more than before, up to 0.1 s of output. Lines are not held back
(` + "`mode=full`" + `) in a program that may call fork, exec, _exit or the like, where they
would be lost or doubled. Refused are streams that are also read, for wide
characters, to terminals, sockets and descriptors that do not block, and those of
programs with several threads that write without the stream's lock.

*MPI control variables* are settings too, named ` + "`mpi_t.`" + ` and what the library calls
them (MPI_T of Open MPI and MPICH), if they are single integers. They have to be
equal in all ranks, so they are changed at an agreed call
(` + "`SafePoint.KIND_AGREED_CALL`" + `) and not by command: all ranks must be named, run
on one node, and have a measure point with ` + "`numbered`" + ` calls on a function that all
of them call equally often, from their start on. It must be one that no rank leaves
before all have come (MPI_Allreduce, MPI_Barrier), and that the program calls with
communicators of all ranks only: calls are counted whatever their communicator, and
ranks that number them differently would change between different operations. Nobody
checks that, so no tunlet of the catalogue does it. The value is first written as it
is, so that a rank which refuses does so before anything changes; then each rank
makes the change before the same call, or none does. Undoing one of the changes
undoes all. A job that comes to fewer than 16 calls in the safe point's time is
answered "not reached", and nothing is left in any rank.

Not covered: jemalloc's number of arenas and thread caches, and mimalloc's
options, which are read once or belong to each thread; programs whose allocator
has no dynamic symbols; two OpenMP run-times in one process, which are refused.
`

// The reference page is made from the table that the code goes by.
func TestSettingsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(settingsHead)
	page.WriteString("| Name | Values | Default | What it does | Where | Way in | Undo |\n|---|---|---|---|---|---|---|\n")
	for _, s := range Settings() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s | %s |\n",
			s.Name, s.Values(), s.Default, s.Description, s.Has, s.WayIn, s.WayBack)
	}
	page.WriteString(settingsTail)
	if *update {
		if err := os.WriteFile(settingsPage, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.String()); diff != "" {
		t.Errorf("docs/reference/settings.md is out of date; run go test ./controller/actuate -update\n%s", diff)
	}
}
