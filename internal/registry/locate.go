// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Locate asks all controllers for processes. It returns when all that are there
// have answered, or after wait, with the answers by host names and the hosts
// that did not answer. Each is asked where only its node can hear it, and
// answers where only it was told to: none answers for another one.
func (c *Client) Locate(ctx context.Context, q *attunev1.LocateRequest, wait time.Duration) (answers []*attunev1.LocateResponse, silent []string, err error) {
	question, err := proto.Marshal(q)
	if err != nil {
		return nil, nil, err
	}
	var subjects []string
	var found []*attunev1.LocateResponse
	for _, one := range c.controllers.list() {
		if q.GetHost() == "" || q.GetHost() == one.GetHost() {
			subjects = append(subjects, subjectLocate+one.name)
			found = append(found, &attunev1.LocateResponse{Controller: one.GetId(), Host: one.GetHost()})
		}
	}
	complete, left, until := make([]bool, len(subjects)), len(subjects), time.Now().Add(wait)
	err = gather(ctx, c.nats, subjects, question, wait, func(n int, m *nats.Msg) time.Duration {
		part := new(attunev1.LocateResponse)
		if proto.Unmarshal(m.Data, part) == nil {
			found[n].Processes = append(found[n].Processes, part.GetProcesses()...)
			found[n].Mismatches = append(found[n].Mismatches, part.GetMismatches()...)
			if m.Header.Get(headerMore) == "" && !complete[n] {
				complete[n], left = true, left-1
			}
		}
		if left == 0 {
			return 0
		}
		return time.Until(until)
	})
	for n, one := range found {
		if complete[n] {
			answers = append(answers, one)
		} else {
			silent = append(silent, one.GetHost())
		}
	}
	return answers, silent, err
}

// ServeLocate answers the questions of Locate to one controller of this node
// until ctx ends, whose cause it returns. f is called with one question at a
// time.
func (n *Node) ServeLocate(ctx context.Context, controller string, f func(*attunev1.LocateRequest) *attunev1.LocateResponse) error {
	questions := make(chan *nats.Msg, 64)
	sub, err := n.nats.ChanSubscribe(subjectLocate+n.token+"."+tokenOf(controller), questions)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.ctx.Done():
			return ErrClosed
		case m := <-questions:
			q := new(attunev1.LocateRequest)
			if strings.HasPrefix(m.Reply, inboxServices) && proto.Unmarshal(m.Data, q) == nil {
				n.answer(m, f(q))
			}
		}
	}
}

// answer sends an answer in parts that fit into messages.
func (n *Node) answer(question *nats.Msg, a *attunev1.LocateResponse) {
	processes, mismatches := a.GetProcesses(), a.GetMismatches()
	for more := true; more; {
		var part attunev1.LocateResponse
		part.Processes, processes = cut(processes)
		part.Mismatches, mismatches = cut(mismatches)
		m := nats.NewMsg(question.Reply)
		more = len(processes)+len(mismatches) > 0
		if more {
			m.Header.Set(headerMore, "1")
		}
		var err error
		if m.Data, err = n.encode(&part); err != nil { // of one process that is too large by itself
			n.log.Warn("a process is left out of an answer", "error", err)
		}
		if err := question.RespondMsg(m); err != nil {
			n.log.Warn("a question for processes remains without answer", "error", err)
			return
		}
	}
}

func cut[T proto.Message](list []T) (part, rest []T) {
	n, size := 0, 0
	for ; n < len(list); n++ {
		if size += proto.Size(list[n]); n > 0 && size > partBytes {
			break
		}
	}
	return list[:n], list[n:]
}
