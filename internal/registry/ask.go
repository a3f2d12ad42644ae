// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Subjects of what is asked and told besides the store. NODE is a node's token,
// see tokenOf; a node has no access to those of another one.
const (
	// SubjectAnalyzers is where the question for Analyzers goes. It is all that a
	// person may ask of the registry.
	SubjectAnalyzers = "attune.analyzers"
	// subjectOrders, NODE is where a node asks for registrations and owners.
	subjectOrders = "attune.orders."
	// subjectControllers, NODE.ID is where a controller's record goes; an empty
	// one is good-bye.
	subjectControllers = "attune.controllers."
	// subjectLocate, NODE.ID is where a controller is asked for processes.
	subjectLocate = "attune.locate."
	// subjectRoll asks all controllers for their records.
	subjectRoll = "attune.roll"
	// inboxNodes, NODE is where a node's answers come, inboxAnalyzers where those
	// of Analyzers do. Users, whose clients have another inbox, cannot listen.
	inboxNodes     = inboxServices + "node."
	inboxAnalyzers = inboxServices + "analyzer"
	inboxServices  = "attune.inbox."
	// headerMore marks an answer that is not the last part.
	headerMore = "Attune-More"
)

// partBytes bounds the list in one part of an answer, bytes. What is in the list
// may alone be larger.
const partBytes = 256 << 10

// NodeSubjects are the subjects of a node by its name in its certificate: where
// it may publish, and where it may listen. It may answer what it hears.
func NodeSubjects(name string) (publish, subscribe []string) {
	node := tokenOf(name)
	return []string{SubjectAnalyzers, subjectOrders + node, subjectControllers + node + ".*"},
		[]string{Changes + bucketOrders + ".>", subjectRoll, subjectLocate + node + ".*", inboxNodes + node + ".>"}
}

// tokenOf is a name as one token of a subject: what may not stand there, and
// dots, are written =XX.
func tokenOf(name string) string {
	var token []byte
	for _, b := range []byte(name) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-', b == '_':
			token = append(token, b)
		default:
			token = fmt.Appendf(token, "=%02X", b)
		}
	}
	return string(token)
}

// gather asks under each of the subjects and calls f with the answers, and the
// number of the subject that each is to, until none has come for wait at first,
// and then for as long as f says; 0: it has enough. That nobody listens is no
// error.
func gather(ctx context.Context, conn *nats.Conn, subjects []string, question []byte, wait time.Duration, f func(n int, m *nats.Msg) time.Duration) error {
	inbox := conn.NewInbox() + "."
	sub, err := conn.SubscribeSync(inbox + "*")
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for n, subject := range subjects {
		if err := conn.PublishRequest(subject, inbox+strconv.Itoa(n), question); err != nil {
			return fmt.Errorf("ask %s: %w", subject, err)
		}
	}
	for deaf := 0; wait > 0 && deaf < len(subjects); {
		wanted, cancel := context.WithTimeout(ctx, wait)
		answer, err := sub.NextMsgWithContext(wanted)
		cancel()
		switch {
		case err == nil:
			n, err := strconv.Atoi(answer.Subject[len(inbox):])
			if err == nil && n >= 0 && n < len(subjects) {
				wait = f(n, answer)
			}
		case errors.Is(err, nats.ErrNoResponders):
			deaf++
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil
		default:
			return fmt.Errorf("ask %s: %w", subjects[0], err)
		}
	}
	return nil
}
