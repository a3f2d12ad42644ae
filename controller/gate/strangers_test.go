// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/testing/lingering"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

var errStranger = errors.New("a stranger")

// mustOpenToFriends makes a gate with one place at each of its sockets. Who connects is a stranger
// as long as own is false.
func mustOpenToFriends(t *testing.T) (g *testGate, own *atomic.Bool) {
	t.Helper()
	own = new(atomic.Bool)
	path, early := mustPrepare(t, small())
	return mustOpen(t, Options{
		Path: path, Early: early, geometry: small(), connections: 1, patience: time.Hour,
		Admit: func(peercred.Peer) error {
			if own.Load() {
				return nil
			}
			return errStranger
		},
	}), own
}

// TestStrangersTakeNoPlaces: whom the gate does not serve is refused before a word is
// said, at both sockets, and has taken nobody's place.
func TestStrangersTakeNoPlaces(t *testing.T) {
	g, own := mustOpenToFriends(t)
	g.serve(t)
	path := g.options.Path
	for range 2 * connectionsPerProcess {
		for _, socket := range []string{path, path + EarlySocket} {
			mustDialAt(t, socket)
			r := patience.Receive(t, "refusal of who says nothing at "+filepath.Base(socket), g.refused)
			if !errors.Is(r.Err, errStranger) || r.Peer.PID != os.Getpid() || r.Peer.Pidfd != nil {
				t.Fatalf("%s: got %+v", socket, r)
			}
		}
	}
	own.Store(true)
	mustDial(t, g).join(Hello{})
	mustAttach(t, g)
	mustDialAt(t, path+EarlySocket).send([]byte("no hello"))
	if r := patience.Receive(t, "word of who leaves nonsense", g.refused); !errors.Is(r.Err, ErrProtocol) {
		t.Errorf("got %v", r.Err)
	}
}

// TestManyStrangers: whoever connects again and again is refused each time, which is told a few
// times only, and others are served meanwhile.
func TestManyStrangers(t *testing.T) {
	const rounds, each = 4, 25
	for name, prepare := range kernels {
		t.Run(name, func(t *testing.T) {
			g, own := mustOpenToFriends(t)
			prepare(t, g)
			g.serve(t)
			for range rounds {
				var strangers []*client
				for range each {
					strangers = append(strangers, mustDial(t, g), mustDialAt(t, g.options.Path+EarlySocket))
				}
				for _, c := range strangers {
					for len(c.finish()) > 0 { // a refusal, then the end
					}
				}
				own.Store(true)
				mustDial(t, g).join(Hello{})
				released(t, patience.Receive(t, "process of the session", g.attached))
				own.Store(false)
			}
			if told := len(g.refused); told > 2*strangersAtOnce {
				t.Errorf("%d of %d strangers were told", told, 2*rounds*each)
			}
		})
	}
}

// kernels make a gate what it is on a kernel: one before Linux 6.16 does not refuse descriptors.
var kernels = map[string]func(t *testing.T, g *testGate){
	"this kernel": func(*testing.T, *testGate) {},
	"before Linux 6.16": func(t *testing.T, g *testGate) {
		t.Helper()
		raw, err := g.listener.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1)
		})
		if errors.Is(failed, unix.ENOPROTOOPT) {
			failed = nil // it is one
		}
		if err = errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
	},
}

// TestRestOfStrangers: how many strangers were not told is told with the next one, or at the end.
func TestRestOfStrangers(t *testing.T) {
	var log strings.Builder
	told := make(chan Refusal, strangersAtOnce+1)
	s := newStrangers(Options{Refused: func(r Refusal) { told <- r }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for n := range strangersAtOnce + 7 {
		if is := s.tell(peercred.Peer{}, errStranger); is != (n < strangersAtOnce) {
			t.Errorf("stranger %d is told: %v", n, is)
		}
	}
	s.tellRest()
	s.tellRest()
	if strings.Count(log.String(), "others=7") != 1 {
		t.Errorf("the log says %q", log.String())
	}
	s.untold.Store(3)
	s.rate = newStrangers(s.options).rate
	s.tell(peercred.Peer{}, errStranger)
	for range strangersAtOnce {
		<-told
	}
	if r := <-told; !errors.Is(r.Err, errStranger) || !strings.Contains(r.Err.Error(), "3 others") {
		t.Errorf("got %v", r.Err)
	}
}

// TestStrangersWithDescriptors: strangers who leave sockets that linger for good keep nobody waiting.
func TestStrangersWithDescriptors(t *testing.T) {
	for name, prepare := range kernels {
		t.Run(name, func(t *testing.T) {
			g, own := mustOpenToFriends(t)
			prepare(t, g)
			leaveLingering(t, g)
			g.serve(t)
			for range 2 {
				if r := patience.Receive(t, "refusal of a stranger", g.refused); !errors.Is(r.Err, errStranger) {
					t.Errorf("got %v", r.Err)
				}
			}
			own.Store(true)
			mustDial(t, g).join(Hello{})
			mustAttach(t, g)
			mustDialAt(t, g.options.Path+EarlySocket).send([]byte("no hello"))
			if r := patience.Receive(t, "word of who leaves nonsense", g.refused); !errors.Is(r.Err, ErrProtocol) {
				t.Errorf("got %v", r.Err)
			}
		})
	}
}

// TestCloseWithDescriptors: a gate is closed though sockets that linger for good wait in connections
// that it has not accepted.
func TestCloseWithDescriptors(t *testing.T) {
	g := mustOpen(t, Options{geometry: small()})
	leaveLingering(t, g)
	closed := make(chan error, 1)
	go func() { closed <- g.Close() }()
	if err := patience.Receive(t, "end of Close", closed); err != nil {
		t.Error(err)
	}
}

// leaveLingering connects to both sockets and leaves sockets there that linger for good.
func leaveLingering(t *testing.T, g *testGate) {
	t.Helper()
	for _, socket := range []string{g.options.Path, g.options.Path + EarlySocket} {
		c := mustDialAt(t, socket)
		if err := lingering.Send(t, c.conn, "x"); err != nil && !errors.Is(err, unix.EPERM) { // Linux 6.16
			t.Fatal(err)
		}
	}
}
