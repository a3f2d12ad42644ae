// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"log/slog"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// What may be done to a program is attuned's to say: why it must be left alone it is asked once in
// a while, for a script executes the same few; why nothing may be changed each time. When
// attuned is gone nothing may be done.
func TestRulesOfPrograms(t *testing.T) {
	own, other, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connOf(other)
	if err != nil {
		t.Fatal(err)
	}
	attuned := mustNew(t, NewPool(Options{}), new(steady)).served
	attuned.process = &process{conversation: newConversation(own, mostFromChild, 0)}
	asked := map[string]int{}
	why := func(what string) func(string) string {
		return func(program string) string { asked[what+" "+program]++; return what + " " + program }
	}
	attuned.config.Denied, attuned.config.Untouched = why("denied"), why("untouched")
	requests := &requests{served: attuned, echo: newEcho(slog.New(slog.DiscardHandler))}
	c := newConversation(conn, mostToChild, 1)
	var listening sync.WaitGroup
	listening.Go(func() { _ = attuned.process.listen(requests.handle) }) // they end when both have hung up
	listening.Go(func() { _ = c.listen((&session{conversation: c}).handle) })

	rules := &ruler{conversation: c}
	const rounds = 100
	for range rounds {
		for _, program := range []string{"/bin/vasp", "/bin/sh", ""} {
			if got := rules.denied(program); got != "denied "+program {
				t.Errorf("%q: %q", program, got)
			}
			if got := rules.untouched(program); got != "untouched "+program {
				t.Errorf("%q: %q", program, got)
			}
		}
	}
	if err := errors.Join(own.Close(), conn.Close()); err != nil {
		t.Error(err)
	}
	listening.Wait()
	if n := asked["untouched /bin/sh"]; n <= rounds || n > rounds+rounds/2 { // each time, and once in a while
		t.Errorf("asked %d times in %d rounds", n, rounds)
	}
	if rules.denied("/bin/new") == "" || rules.untouched("/bin/sh") == "" {
		t.Error("allowed by nobody")
	}
}
