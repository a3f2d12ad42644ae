// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// bpfStream is BPF process events: the kernel knows who is a member of which
// view, and which names matter.
type bpfStream struct{ *procevent.ProcessEvents }

func openBPF() (stream, error) { return openEvents(true) }

func openBPFWithoutAccounts() (stream, error) { return openEvents(false) }

// isPrivilege says whether a user may load no programs.
func isPrivilege(err error) bool {
	unsupported, is := errors.AsType[*bpf.UnsupportedError](err)
	return is && unsupported.Remedy == bpf.PrivilegeRemedy
}

func openEvents(accounts bool) (stream, error) {
	events, err := procevent.New(procevent.Options{NodeWide: true, Accounts: accounts})
	if err != nil {
		return nil, err
	}
	return bpfStream{events}, nil
}

func (bpfStream) mode() string { return ModeWatch }

func (b bpfStream) follow(pid int, view uint32) error { return b.AddTo(pid, view) }

func (b bpfStream) unfollow(pid int) error { return b.Remove(pid) }

func (b bpfStream) refused(view uint32) uint64 { return b.Refused(view) }

func (b bpfStream) account(pid int) error { return b.Account(pid) }

func (b bpfStream) want(names []procevent.Name) error { return b.Want(names) }

func (b bpfStream) run(ctx context.Context, handle func(event)) error {
	return b.Run(ctx, func(e procevent.Event) {
		tagged := event{Event: track.EventOf(e), tagged: true}
		if e.Member {
			tagged.view = e.Slot
		}
		handle(tagged)
	})
}

func (b bpfStream) lost() uint64 { return b.Lost() }

func (b bpfStream) close() error { return b.Close() }

// connectorStream is the kernel's process connector: everything that every
// process does.
type connectorStream struct {
	track.Source
	passive
}

func openConnector() (stream, error) {
	source, err := track.NewConnector()
	if err != nil {
		return nil, err
	}
	return connectorStream{Source: source}, nil
}

func (connectorStream) mode() string { return ModeWatch }

func (c connectorStream) run(ctx context.Context, handle func(event)) error {
	return c.Run(ctx, func(e track.Event) { handle(event{Event: e}) })
}

func (c connectorStream) lost() uint64 { return c.Lost() }

func (c connectorStream) close() error { return c.Close() }
