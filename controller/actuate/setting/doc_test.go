// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/golden"
)

const settingsHead = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Named settings

What tunlets (` + "`NamedSetting`" + `) and ` + "`attune tune PID NAME=VALUE`" + ` may change by name in the
libraries of a running process. Made from the table that the code goes by with
` + "`go test ./controller/actuate/setting -update`" + `.

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

*MPI control variables* (MPI_T of Open MPI and MPICH) are settings too, named
` + "`mpi_t.`" + ` and what the library calls them:
` + "`attune tune LAUNCHER mpi_t.MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM=pairwise`" + `, with the
pid of ` + "`mpirun`" + ` or those of all ranks; a tunlet proposes the same change for every
rank. The value is a whole number, or its name where the library has names for values.

Most variables have to be the same in all ranks, so all change before the same call
of ` + "`MPI_Allreduce`, `MPI_Barrier`, `MPI_Alltoall` or `MPI_Allgather`" + ` with
` + "`MPI_COMM_WORLD`" + `, or none does. Each rank is stopped by a breakpoint where it enters
one. No rank leaves such a call before all have entered it, so when all of them stand
at an entry, it is that of the same call. A rank waits for the others for 10 ms at
first, then goes on, and waits twice as long the next time, up to 2 s: whoever waits
does not serve what others have sent to it. When all stand, every rank looks at the
variable and writes it as it is, so that one which refuses does so before anything
changes; then all write it, and read it back. That takes some ten milliseconds. After
10 s, or what ` + "`--wait`" + ` says, whoever stands goes on, and nothing was changed. A rank
that ends meanwhile ends the attempt. If ` + "`attune`" + ` itself is killed, the ranks go on;
only where that happens in the millisecond of the writes some may have the new value
and others not, and ` + "`attune undo`" + ` gives all of them the old one. Undoing one of the
changes undoes all, in the same way.

Refused are: variables that the library calls constant or read-only, texts, real
numbers and arrays, and those of a communicator or window; values that an enumeration
does not have (MPICH has the names in its descriptions, and does not check values
itself: a limit that makes no sense is taken); some of the ranks, or a job with ranks
on other nodes, unless the variable is local by its scope; programs that have asked
for ` + "`MPI_THREAD_MULTIPLE`" + `, whose other threads may be inside MPI. What the library
does with a new value is its own affair: Open MPI takes most of its variables over when
a communicator is made. MPI_T stays initialized in the ranks. Not seen is a
collective operation without barrier or data that the program has begun
(` + "`MPI_Ialltoall`" + `) and that other ranks begin only after the call.

Not covered: jemalloc's number of arenas and thread caches, and mimalloc's
options, which are read once or belong to each thread; programs whose allocator
has no dynamic symbols; two OpenMP run-times in one process, which are refused.
`

// The reference page is made from the table that the code goes by.
func TestSettingsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(settingsHead)
	page.WriteString("| Name | Values | Default | What it does | Where | Way in | Undo |\n|---|---|---|---|---|---|---|\n")
	for _, s := range All() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s | %s |\n",
			s.Name, s.Values(), s.Default, s.Description, s.Has, s.WayIn, s.WayBack)
	}
	page.WriteString(settingsTail)
	golden.File(t, "../../../docs/reference/settings.md", []byte(page.String()))
}
