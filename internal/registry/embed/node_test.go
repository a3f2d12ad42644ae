// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestNodes: a node, with a NATS client of its own making, can neither write what
// others believe, nor say it in another node's name, nor hear what is for others.
// It has no access to JetStream, which writes wherever who asks wants the answer.
func TestNodes(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	conn, refused := mustDial(t, url, site.Node(t, "n1.example.org"))
	mustDeny(t, conn, refused, []string{
		"$KV.attune_orders.registration.evil", "$KV.attune_orders.owner.solver", "$KV.attune_analyzers.analyzer", "$KV.attune_sessions.s",
		"$JS.API.STREAM.INFO.KV_attune_orders", "$JS.API.DIRECT.GET.KV_attune_orders", "$JS.API.STREAM.MSG.GET.KV_attune_orders",
		"$JS.API.CONSUMER.CREATE.KV_attune_orders", "$JS.API.STREAM.PURGE.KV_attune_orders", "$JS.API.STREAM.DELETE.KV_attune_orders",
		"$JS.attune.API.CONSUMER.CREATE.KV_attune_orders", "$JS.API.INFO", "$SYS.REQ.SERVER.PING",
		"attune.changes.attune_orders.registration.evil", "attune.roll", "attune.inbox.analyzer.x", "attune.inbox.node.n2.x",
		"attune.controllers.n2.c", "attune.controllers.n1.c", "attune.orders.n2", "attune.locate.n2.c",
	}, []string{
		">", "attune.>", "attune.inbox.>", "attune.inbox.analyzer.>", "attune.inbox.node.n2.>", "attune.locate.>", "attune.locate.n2.*",
		"attune.controllers.>", "attune.orders.*", "attune.changes.attune_sessions.>", "$KV.>", "$JS.>", "_INBOX.>", "attune.analyzers",
	})
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 || list[0].GetId() != "solver" {
		t.Errorf("registrations: %v, %v", list, err)
	}
}

// TestNodesAnswersGoToNodes: an Analyzer that a node asks is not made to write where
// the node may not, nor to answer another node.
func TestNodesAnswersGoToNodes(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	conn, _ := mustDial(t, url, site.Node(t, "n1"))
	other, _ := mustDial(t, url, site.Node(t, "n2"))
	heard, err := other.SubscribeSync("attune.inbox.node.n2.>")
	if err == nil {
		err = other.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"$KV.attune_orders.registration.evil", "attune.changes.attune_orders.owner.solver", "attune.inbox.node.n2.x", "attune.locate.n2.c"} {
		for _, subject := range []string{"attune.orders.n1", registry.SubjectAnalyzers} {
			if subject == registry.SubjectAnalyzers && reply == "attune.inbox.node.n2.x" {
				continue // any node may be told which Analyzers there are
			}
			if err := conn.PublishRequest(subject, reply, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Questions behind them are answered: so they have been dealt with.
	for _, subject := range []string{"attune.orders.n1", registry.SubjectAnalyzers} {
		mustAnswer(t, conn, subject, "attune.inbox.node.n1.y")
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := heard.Pending(); n != 0 || err != nil {
		t.Errorf("%d answers came to another node, %v", n, err)
	}
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 || list[0].GetId() != "solver" {
		t.Errorf("registrations: %v, %v", list, err)
	}
}

// mustAnswer waits for the answer to a question.
func mustAnswer(t *testing.T, conn *nats.Conn, subject, inbox string) *nats.Msg {
	t.Helper()
	sub, err := conn.SubscribeSync(inbox)
	if err == nil {
		err = conn.PublishRequest(subject, inbox, nil)
	}
	var answer *nats.Msg
	if err == nil {
		answer, err = sub.NextMsg(patience.Limit)
	}
	if err == nil {
		err = sub.Unsubscribe()
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestNodesSpeakForThemselves: what a node says of itself is filed under its own
// name, it hears only what it is asked itself, and answers once it was asked only.
func TestNodesSpeakForThemselves(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	honest, err := registry.OpenNode(t.Context(), registry.Options{URL: url, Identity: site.Node(t, "n2")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(honest.Close)
	record := &attunev1.ControllerRecord{Id: "c", Host: "n2"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = honest.Announce(ctx, nil, func() *attunev1.ControllerRecord { return record }) }()
	go func() {
		_ = honest.ServeLocate(ctx, "c", func(*attunev1.LocateRequest) *attunev1.LocateResponse {
			return &attunev1.LocateResponse{Processes: []*attunev1.LocatedProcess{{Registration: "solver"}}}
		})
	}()
	evil, refused := mustDial(t, url, site.Node(t, "n1"))
	questions, err := evil.SubscribeSync("attune.locate.n1.c")
	if err != nil {
		t.Fatal(err)
	}
	value, err := proto.Marshal(record) // of the same id and host
	if err == nil {
		err = errors.Join(evil.Publish("attune.controllers.n1.c", value), evil.Flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "both to be known", func() bool { return len(service.Controllers()) == 2 })
	var answers []*attunev1.LocateResponse
	patience.Until(t, "the honest one's answer", func() bool {
		answers, _, err = service.Locate(patience.Context(t), &attunev1.LocateRequest{}, 200*time.Millisecond)
		return err != nil || len(answers) == 1
	})
	if err != nil || answers[0].GetProcesses()[0].GetRegistration() != "solver" {
		t.Fatalf("answers %v, %v", answers, err)
	}
	question, err := questions.NextMsg(patience.Limit)
	if err != nil {
		t.Fatal(err)
	}
	// The other one's answer would go to the same inbox, under another number.
	for _, number := range []string{"0", "1", "2"} {
		subject := question.Reply[:len(question.Reply)-1] + number
		if subject == question.Reply {
			continue
		}
		mustBeRefused(t, refused, "answer in another's name", func() error {
			return errors.Join(evil.Publish(subject, nil), evil.Flush())
		})
	}
	// Good-bye is said for oneself.
	if err := errors.Join(evil.Publish("attune.controllers.n1.c", nil), evil.Flush()); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "one to be left", func() bool { return len(service.Controllers()) == 1 })
	if _, _, err := service.Locate(patience.Context(t), &attunev1.LocateRequest{}, patience.Limit); err != nil {
		t.Error(err)
	}
}
