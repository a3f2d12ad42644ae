// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrNoAnalyzer is returned when a registry knows none.
var ErrNoAnalyzer = errors.New("no Analyzer answers at the registry")

const (
	// answersWithin is for the Analyzers that are slower than the first.
	answersWithin = 100 * time.Millisecond
	// firstWithin is for that one.
	firstWithin = 2 * time.Second
)

// FindAnalyzers asks a registry for the Analyzers that live, and returns them
// with the one that has run longest first. It is for people, whose certificates
// allow nothing else. It fails, instead of waiting, if the registry is away.
func FindAnalyzers(ctx context.Context, o Options) ([]*attunev1.AnalyzerRecord, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(onceWithin), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if o.secured() {
		options = append(options, o.secure(o.Identity.Certificate, o.verifyServer)...)
	}
	conn, err := nats.Connect(o.dialOptions(options))
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", o.URL, err)
	}
	defer conn.Close()
	found, err := askAnalyzers(ctx, conn, untilAll)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: %s", ErrNoAnalyzer, o.URL)
	}
	return found, err
}

// Analyzers returns those that answer, with the one that has run longest first.
func (n *Node) Analyzers(ctx context.Context) ([]*attunev1.AnalyzerRecord, error) {
	var found []*attunev1.AnalyzerRecord
	err := n.do(ctx, func(ctx context.Context) (err error) {
		found, err = askAnalyzers(ctx, n.nats, untilAll)
		return err
	})
	return found, err
}

// Tunlets returns the names of the tunlets that the Analyzers have, sorted: at once when
// the wanted ones are among them, else when all Analyzers have answered. It returns none
// where that is not known: no Analyzer answers, or one does not say what it has.
func (n *Node) Tunlets(ctx context.Context, wanted []string) ([]string, error) {
	names, silent := map[string]bool{}, false
	err := n.do(ctx, func(ctx context.Context) error {
		_, err := askAnalyzers(ctx, n.nats, func(r *attunev1.AnalyzerRecord) bool {
			silent = silent || len(r.GetTunlets()) == 0
			for _, name := range r.GetTunlets() {
				names[name] = true
			}
			return !slices.ContainsFunc(wanted, func(name string) bool { return !names[name] })
		})
		return err
	})
	if silent {
		return nil, err
	}
	return slices.Sorted(maps.Keys(names)), err
}

// untilAll has askAnalyzers wait for all of them.
func untilAll(*attunev1.AnalyzerRecord) bool { return false }

// askAnalyzers returns the Analyzers that answer until enough says so of one.
func askAnalyzers(ctx context.Context, conn *nats.Conn, enough func(*attunev1.AnalyzerRecord) bool) ([]*attunev1.AnalyzerRecord, error) {
	found := make(map[string]*attunev1.AnalyzerRecord)
	err := gather(ctx, conn, []string{SubjectAnalyzers}, nil, firstWithin, func(_ int, m *nats.Msg) time.Duration {
		if r := new(attunev1.AnalyzerRecord); proto.Unmarshal(m.Data, r) == nil {
			found[r.GetId()] = r
			if enough(r) {
				return 0
			}
		}
		return answersWithin
	})
	return slices.SortedFunc(maps.Values(found), func(a, b *attunev1.AnalyzerRecord) int {
		return cmp.Compare(a.GetStartedUnixNano(), b.GetStartedUnixNano())
	}), err
}

// serveAnalyzer answers FindAnalyzers until stop is called. That the registry
// is away does not matter: the subscription is made again.
func (c *conn) serveAnalyzer(record *attunev1.AnalyzerRecord, tunlets func() []string) (stop func()) {
	sub, err := c.nats.Subscribe(SubjectAnalyzers, func(m *nats.Msg) {
		// Who asks says where the answer goes, and may be somebody who must not
		// write anywhere else.
		if !strings.HasPrefix(m.Reply, nats.InboxPrefix) && !strings.HasPrefix(m.Reply, inboxNodes) {
			return
		}
		answer := proto.CloneOf(record)
		if tunlets != nil {
			answer.Tunlets = tunlets()
		}
		value, err := c.encode(answer)
		if err == nil {
			err = m.Respond(value)
		}
		if err != nil {
			c.log.Warn("a question for Analyzers remains without answer", "error", err)
		}
	})
	if err != nil {
		c.log.Warn("users cannot find this Analyzer", "error", err)
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}
