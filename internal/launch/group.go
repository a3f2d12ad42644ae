// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"log/slog"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// lag is how much later than this process the witness may get a signal from a
// sender that goes through a list of processes (batch systems do). A signal to
// a process group reaches the witness first: the kernel goes from the newest
// member to the oldest.
const lag = 5 * time.Millisecond

// burst is how soon after a signal to the group another of its kind is taken
// for one to the group too: what is pending in the witness is not counted.
const burst = 50 * time.Millisecond

// group knows what was sent to the whole process group.
type group struct {
	witness *witness // nil: none
	// owed are signals that a former witness saw and that this process has
	// not relayed yet.
	owed procid.Signals
	// last is when each signal was last found to be sent to the group.
	last map[syscall.Signal]time.Time
	log  *slog.Logger
}

// got tells whether the program has got this signal too. It may be asked once
// per caught signal.
func (g *group) got(sig syscall.Signal) bool {
	if g.witness == nil {
		return fromTerminal(sig) && (sig == syscall.SIGCONT || Foreground())
	}
	if !g.saw(sig) {
		return false
	}
	if g.witness.pending().Has(sig) {
		g.renew()
	}
	g.owed = g.owed.Without(sig)
	if g.last == nil {
		g.last = map[syscall.Signal]time.Time{}
	}
	g.last[sig] = time.Now()
	return true
}

// saw tells whether sig was sent to the group and not asked for yet.
func (g *group) saw(sig syscall.Signal) bool {
	if g.witness == nil {
		return fromTerminal(sig)
	}
	if (g.owed | g.witness.pending()).Has(sig) {
		return true
	}
	time.Sleep(lag)
	return g.witness.pending().Has(sig) || time.Since(g.last[sig]) < burst
}

// renew replaces the witness: what is pending in it stays so, and would be
// taken for the next signal of that kind. The new one is there before the old
// one goes, so that nothing is missed.
func (g *group) renew() {
	next, err := newWitness()
	if err != nil {
		g.log.Warn("signals are told apart by the terminal only", "error", err)
	}
	g.owed |= g.witness.pending()
	g.witness.close()
	g.witness = next
}

func (g *group) close() {
	if g.witness != nil {
		g.witness.close()
		g.witness = nil
	}
}
