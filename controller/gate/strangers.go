// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

const (
	// strangersAtOnce and strangersEvery bound how many strangers anybody is told of: one who
	// connects again and again costs an accept, a look at whose the connection is, and a close, which
	// before Linux 6.16 is made by a thread for many.
	strangersAtOnce = 20
	strangersEvery  = 3 * time.Second
)

// strangers are the peers whom the gate does not serve, all together, whoever they are. Its
// methods may be called from any goroutine.
type strangers struct {
	options Options
	rate    *quota.Rate[struct{}]
	untold  *atomic.Uint64 // refused since the last one that was told
}

func newStrangers(o Options) strangers {
	return strangers{o, quota.NewRate[struct{}](strangersAtOnce, strangersEvery), new(atomic.Uint64)}
}

// admit says whether the gate serves who has connected. It refuses others before a word is said:
// who says nothing would keep a place that somebody of the session needs.
func (s strangers) admit(conn *net.UnixConn, refused *unixmsg.Refused) bool {
	peer, err := peercred.Of(conn)
	if err == nil {
		err = s.options.Admit(peer)
	}
	if err == nil {
		return true
	}
	if s.tell(peer, err) {
		refuse(conn)
	}
	refused.Add(conn)
	return false
}

// tell tells who is refused and why, unless there are too many.
func (s strangers) tell(peer peercred.Peer, why error) (told bool) {
	if !s.rate.Take(struct{}{}) {
		s.untold.Add(1)
		return false
	}
	if untold := s.untold.Swap(0); untold > 0 {
		why = fmt.Errorf("%w; %d others were refused since the last one that was told", why, untold)
	}
	s.options.Refused(Refusal{Peer: peer, Err: why})
	return true
}

// tellRest tells at the end how many were not told.
func (s strangers) tellRest() {
	if untold := s.untold.Swap(0); untold > 0 {
		s.options.Log.Warn("strangers were refused at the start gate", "others", untold)
	}
}
