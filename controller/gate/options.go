// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/peercred"
)

const (
	defaultConnections = 256
	// connectionsPerProcess: DMLib opens one at a time.
	connectionsPerProcess = 4
	// maxPath is what fits a socket address.
	maxPath = 107
)

// ErrNotAdmitted means that the peer is not one that the gate serves.
var ErrNotAdmitted = errors.New("not admitted")

// Attachment is a process that has its memory file mapped.
type Attachment struct {
	// Peer is the process. Pidfd now belongs to the receiver of the
	// Attachment.
	peercred.Peer
	// Hello is what it said about itself.
	Hello Hello
	// Memory is its memory file, ready, and closed by the receiver.
	Memory *shm.Memory
	// Deadline is shortly before the process stops waiting for the callback and enters
	// main; zero if nothing waits (a forked child, one that has waited for too long, or
	// Hold said no).
	Deadline time.Time
}

// Refusal is a process that did not get through the gate.
type Refusal struct {
	// Peer is the process as far as it could be told, without Pidfd.
	Peer peercred.Peer
	// Err is the reason.
	Err error
}

// Options configures a Gate. Path, Attached, Hold and Refused are required.
type Options struct {
	// Path is where the socket is made. Its folder is made if it is missing.
	Path string
	// Mode is that of the socket. 0: 0600, and the folder must then be closed
	// to other users too.
	Mode fs.FileMode
	// Early is a listening socket at which processes that start before this
	// controller is up leave their memory files (dmlib_gate.h). The Gate owns it
	// from New on. Nil: none do, and it makes one for those that SetEarly lets.
	Early *os.File
	// Log takes what cannot be returned. Nil: nothing is logged.
	Log *slog.Logger
	// Admit decides whether a process is served, before it has said anything: who is
	// not takes no place. Nobody is accepted meanwhile. Nil: those of the controller's own user.
	Admit func(peercred.Peer) error
	// Attached takes over each process that got through, exactly once. A held
	// process waits until it returns, or until the Attachment's deadline: it
	// is the moment to place measure points.
	Attached func(Attachment)
	// Hold says whether there is anything to be in place before main in a
	// process that is about to be given its memory file. Where it says no, "go"
	// is sent along with the file, and the process does not wait for its being
	// attached. Attached or Refused follows.
	Hold func(peercred.Peer) bool
	// Refused is told who did not get through; of those that Admit refuses 20 at once, and
	// one every 3 s.
	Refused func(Refusal)

	// Timeout is how long a held process waits, as its DMLib was built. 0: the
	// constant of that name.
	Timeout time.Duration

	// What follows is set by tests only.

	geometry    shm.Geometry  // of the first memory file that a process is offered
	patience    time.Duration // cuts a peer off earlier than Patience
	connections int           // how many are served at a time, at each of both sockets; 0: 256
}

// complete checks o and replaces zeros by the documented values.
func (o Options) complete() (Options, error) {
	if o.Path == "" || len(o.Path) > maxPath {
		return o, fmt.Errorf("socket path of %d bytes: want 1 to %d, in a folder with a shorter name", len(o.Path), maxPath)
	}
	o.connections = cmp.Or(o.connections, defaultConnections)
	o.Timeout = cmp.Or(o.Timeout, Timeout)
	o.patience = cmp.Or(o.patience, max(Patience, o.Timeout))
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Admit == nil {
		o.Admit = admitOwn
	}
	return o, nil
}

// admitOwn serves the controller's own user.
func admitOwn(p peercred.Peer) error {
	if own := os.Geteuid(); p.UID != own {
		return fmt.Errorf("%w: user %d is not the controller's %d", ErrNotAdmitted, p.UID, own)
	}
	return nil
}
