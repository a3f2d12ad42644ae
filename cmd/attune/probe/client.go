// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/site"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/local"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sessionPatience is how long another attune may take to answer, and shellPatience all
// of them while a shell completes a word. One that does not is left out.
const (
	sessionPatience = 10 * time.Second
	shellPatience   = 2 * time.Second
)

// maxOfOthers bounds what a session of another user may answer, bytes.
const maxOfOthers = 4 << 20

// holder is a session, in this process or another one, with those processes of
// its that are meant. The kernel vouches for who is at the other end: only the
// user may write to the directory.
type holder struct {
	attunev1.ProbeServiceClient

	conn   *grpc.ClientConn
	place  probePlace // of a session at a site
	pids   []int32
	probes []*attunev1.Probe
	uid    int // whose session it is
}

// probePlace is where processes are meant. The zero value: on this machine.
type probePlace struct {
	at            site.Flags
	session, host string
}

func (w *probePlace) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	w.at.Add(flags)
	flags.StringVar(&w.session, "session", "", "the processes are of the session `ID` of a site, on whatever node")
	flags.StringVar(&w.host, "host", "", "with --session: the processes are on the node `HOST`")
	cli.MustComplete(cmd, "session", func() []string { return w.sessions(cmd.Context()) })
}

// holders returns the sessions that hold processes, and the processes of this machine
// that no session holds. The caller closes them.
func (w probePlace) holders(ctx context.Context, pids []int) (held []*holder, rest []int, err error) {
	if w.session != "" {
		h, err := w.dial(ctx, pids)
		if err != nil {
			return nil, nil, err
		}
		return []*holder{h}, nil, nil
	}
	if w != (probePlace{}) {
		return nil, nil, exitcode.UsageError(errors.New("no session is named"), "name it with --session; `attune session list` shows yours")
	}
	held = holders(ctx, pids)
	return held, free(pids, held), nil
}

// dial connects to a session of a site, by the Analyzer that has it. What it does not
// hold of the processes is an error.
func (w probePlace) dial(ctx context.Context, pids []int) (*holder, error) {
	return site.Ask(ctx, w.at, func(ctx context.Context, c *site.Client) (*holder, error) {
		own, err := site.Dial(c.Conn.Target())
		if err != nil {
			return nil, err
		}
		h := &holder{ProbeServiceClient: attunev1.NewProbeServiceClient(own.Conn), conn: own.Conn, place: w, uid: os.Geteuid()}
		if err := h.look(ctx, pids); err != nil {
			h.close()
			return nil, err
		}
		for _, pid := range pids {
			if !slices.Contains(h.pids, int32(pid)) {
				h.close()
				return nil, status.Errorf(codes.NotFound, "process %d is not in session %s, or not yours", pid, w.session)
			}
		}
		return h, nil
	})
}

// dialSession connects to a session by its socket.
func dialSession(socket string, more ...grpc.DialOption) (*holder, error) {
	conn, err := grpc.NewClient("unix:"+socket, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(attunev1.MaxAnswer))}, more...)...)
	if err != nil {
		return nil, err
	}
	return &holder{ProbeServiceClient: attunev1.NewProbeServiceClient(conn), conn: conn}, nil
}

func (h *holder) close() { _ = h.conn.Close() } // nothing is under way

// holders asks the user's sessions which of the processes they hold, all if
// none is given, and returns those that hold some. The caller closes them.
func holders(ctx context.Context, pids []int) []*holder {
	return holdersIn(ctx, rundir.Running(rundir.Current()), pids)
}

// othersHolders asks the sessions of all other users. What they answer is their
// users' word: it is to be shown as that, and nothing is to be done by it.
func othersHolders(ctx context.Context, pids []int) (found []*holder) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards found
	for uid, dirs := range rundir.RunningOfOthers(rundir.Current()) {
		all.Go(func() {
			of := holdersIn(ctx, dirs, pids, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxOfOthers)))
			for _, h := range of {
				h.uid = uid
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, of...)
		})
	}
	all.Wait()
	return found
}

func holdersIn(ctx context.Context, dirs []string, pids []int, more ...grpc.DialOption) []*holder {
	found := make([]*holder, len(dirs))
	var all sync.WaitGroup // one that does not answer holds up no other
	for i, dir := range dirs {
		all.Go(func() {
			h, err := dialSession(rundir.SocketIn(dir, local.Socket), more...)
			if err != nil {
				return
			}
			if err := h.look(ctx, pids); err != nil || len(h.pids) == 0 {
				h.close() // it is starting or ending, is older, or has none of them
				return
			}
			h.uid = os.Geteuid()
			found[i] = h
		})
	}
	all.Wait()
	return slices.DeleteFunc(found, func(h *holder) bool { return h == nil })
}

// look fills in what the session holds of the processes.
func (h *holder) look(ctx context.Context, pids []int) error {
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	list, err := h.ListProbes(ctx, &attunev1.ListProbesRequest{Session: h.place.session, Host: h.place.host, Pids: ids(pids)})
	if err != nil {
		return err
	}
	h.pids = list.GetPids()
	if len(pids) > 0 {
		h.pids = slices.DeleteFunc(h.pids, func(pid int32) bool { return !slices.Contains(pids, int(pid)) })
	}
	h.probes = list.GetProbes()
	return nil
}

func closeHolders(all []*holder) {
	for _, h := range all {
		h.close()
	}
}

// free returns the processes that no session holds.
func free(pids []int, held []*holder) (rest []int) {
	for _, pid := range pids {
		if !slices.ContainsFunc(held, func(h *holder) bool { return slices.Contains(h.pids, int32(pid)) }) {
			rest = append(rest, pid)
		}
	}
	return rest
}

// eachOnce leaves each process with one session only, though several may follow it, and
// returns the sessions that are left with some.
func eachOnce(held []*holder) (busy []*holder) {
	taken := make(map[int32]bool)
	for _, h := range held {
		var own []int32
		for _, pid := range h.pids {
			if !taken[pid] {
				taken[pid] = true
				own = append(own, pid)
			}
		}
		if h.pids = own; len(own) > 0 {
			busy = append(busy, h)
		}
	}
	return busy
}

// withAdded returns the sessions in which points were added to the processes; all where none
// knows of any, for a point that is not answered yet is not told of.
func withAdded(held []*holder) []*holder {
	var added []*holder
	for _, h := range held {
		if slices.ContainsFunc(h.probes, func(probe *attunev1.Probe) bool { return probe.GetNumber() != 0 }) {
			added = append(added, h)
		}
	}
	if len(added) == 0 {
		return held
	}
	return added
}

func ids(pids []int) []int32 {
	out := make([]int32, 0, len(pids))
	for _, pid := range pids {
		out = append(out, int32(pid))
	}
	return out
}

// existing refuses processes that cannot be measured in because they are not
// there, or not this user's.
func existing(pids []int) error {
	processes, err := procs.Hold(pids)
	procs.LetGo(processes)
	if err != nil {
		return &exitcode.Error{Code: exitcode.Failure, Err: err, Remedy: "`attune ps` shows processes"}
	}
	return procs.Permitted(pids)
}

// failedProbes is the error of points of which none could be placed.
func failedProbes(refused, all int) error {
	if all == 0 || refused < all {
		return nil
	}
	return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("none of the %d measure points could be placed", all)}
}
