// SPDX-License-Identifier: Apache-2.0

package registry

import (
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

const (
	// subjectLocate is where questions for processes go, to all controllers.
	subjectLocate = "attune.locate"
	// SubjectAnalyzers is where the question for Analyzers goes. It is all that
	// a user may ask of the registry.
	SubjectAnalyzers = "attune.analyzers"
	// headerMore marks an answer that is not the last part.
	headerMore = "Attune-More"
	// partProcesses are in one part of an answer.
	partProcesses = 200
)

// Locate asks all controllers for processes. It returns when all that are in
// the registry have answered, or after wait, with the answers by host names and
// the hosts that did not answer.
func (c *Client) Locate(ctx context.Context, q *attunev1.LocateRequest, wait time.Duration) (answers []*attunev1.LocateResponse, silent []string, err error) {
	controllers, err := c.Controllers(ctx)
	if err != nil {
		return nil, nil, err
	}
	asked := make(map[string]string) // controller to host
	for _, one := range controllers {
		if q.GetHost() == "" || q.GetHost() == one.GetHost() {
			asked[one.GetId()] = one.GetHost()
		}
	}
	question, err := proto.Marshal(q)
	if err != nil {
		return nil, nil, err
	}
	found, until := make(map[string]*attunev1.LocateResponse), time.Now().Add(wait)
	err = gather(ctx, c.nats, subjectLocate, question, wait, func(m *nats.Msg) time.Duration {
		part := new(attunev1.LocateResponse)
		if proto.Unmarshal(m.Data, part) != nil {
			return time.Until(until)
		}
		whole := found[part.GetController()]
		if whole == nil {
			whole = &attunev1.LocateResponse{Controller: part.GetController(), Host: part.GetHost()}
			found[part.GetController()] = whole
		}
		whole.Processes = append(whole.Processes, part.GetProcesses()...)
		whole.Mismatches = append(whole.Mismatches, part.GetMismatches()...)
		if m.Header.Get(headerMore) == "" {
			delete(asked, part.GetController())
		}
		if len(asked) == 0 {
			return 0
		}
		return time.Until(until)
	})
	answers = slices.SortedFunc(maps.Values(found), func(a, b *attunev1.LocateResponse) int {
		return strings.Compare(a.GetHost(), b.GetHost())
	})
	return answers, slices.Sorted(maps.Values(asked)), err
}

// gather publishes a question and calls f with the answers, until none has come
// for wait at first, and then for as long as f says; 0: it has enough. That
// nobody listens is no error.
func gather(ctx context.Context, conn *nats.Conn, subject string, question []byte, wait time.Duration, f func(*nats.Msg) time.Duration) error {
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := conn.PublishRequest(subject, inbox, question); err != nil {
		return fmt.Errorf("ask %s: %w", subject, err)
	}
	for wait > 0 {
		wanted, cancel := context.WithTimeout(ctx, wait)
		answer, err := sub.NextMsgWithContext(wanted)
		cancel()
		switch {
		case err == nil:
			wait = f(answer)
		case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil
		default:
			return fmt.Errorf("ask %s: %w", subject, err)
		}
	}
	return nil
}

// ServeLocate answers the questions of Locate until ctx ends, whose cause it
// returns. f is called with one question at a time, for this host or all hosts;
// nil: nothing to say.
func (c *Client) ServeLocate(ctx context.Context, host string, f func(*attunev1.LocateRequest) *attunev1.LocateResponse) error {
	questions := make(chan *nats.Msg, 64)
	sub, err := c.nats.ChanSubscribe(subjectLocate, questions)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.ctx.Done():
			return ErrClosed
		case m := <-questions:
			q := new(attunev1.LocateRequest)
			if !strings.HasPrefix(m.Reply, inboxPrefix) || proto.Unmarshal(m.Data, q) != nil || q.GetHost() != "" && q.GetHost() != host {
				continue
			}
			if answer := f(q); answer != nil {
				c.answer(m, answer)
			}
		}
	}
}

// answer sends an answer in parts that fit into messages.
func (c *Client) answer(question *nats.Msg, a *attunev1.LocateResponse) {
	processes, mismatches := a.GetProcesses(), a.GetMismatches()
	for {
		var part attunev1.LocateResponse
		part.Controller, part.Host = a.GetController(), a.GetHost()
		part.Processes, processes = cut(processes)
		part.Mismatches, mismatches = cut(mismatches)
		m := nats.NewMsg(question.Reply)
		more := len(processes)+len(mismatches) > 0
		if more {
			m.Header.Set(headerMore, "1")
		}
		var err error
		if m.Data, err = c.encode(&part); err == nil {
			err = question.RespondMsg(m)
		}
		if err != nil {
			c.log.Warn("a question for processes remains without answer", "error", err)
			return
		}
		if !more {
			return
		}
	}
}

func cut[T any](list []T) (part, rest []T) {
	n := min(len(list), partProcesses)
	return list[:n], list[n:]
}
