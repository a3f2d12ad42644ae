// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// conversation is one side of the talk between attuned and the process of a session.
type conversation struct {
	conn  *net.UnixConn
	most  int // bytes of a message that comes
	files int // descriptors that may come with it, at most

	sending sync.Mutex // one message at a time; a leaf lock

	mu      sync.Mutex // guards what follows; a leaf lock
	number  uint64     // of calls so far
	waiting map[uint64]chan reply
	ended   error // why no more can come; nil: it can
}

// reply is an answer with its descriptor, if any.
type reply struct {
	message message
	file    *os.File
}

// newConversation makes one in which messages of at most so many bytes come, with at most so
// many descriptors. attuned takes none: the process of a session may have been taken over.
func newConversation(conn *net.UnixConn, most, files int) *conversation {
	return &conversation{conn: conn, most: most, files: files, waiting: make(map[uint64]chan reply)}
}

// listen calls handle with everything that is no answer, in order, until the other
// side hangs up or handle returns an error. The descriptor is handle's.
func (c *conversation) listen(handle func(message, *os.File) error) error {
	for {
		m, file, err := receive(c.conn, c.most, c.files)
		switch {
		case err != nil:
		case m.Answer:
			err = c.deliver(m, file)
		default:
			err = handle(m, file)
		}
		if err != nil {
			c.end(err)
			return err
		}
	}
}

// deliver hands an answer to whoever waits.
func (c *conversation) deliver(m message, file *os.File) error {
	c.mu.Lock()
	to := c.waiting[m.Call]
	known := m.Call <= c.number
	delete(c.waiting, m.Call)
	c.mu.Unlock()
	if to != nil {
		to <- reply{m, file}
		return nil
	}
	if file != nil {
		_ = file.Close() // nobody waits any more
	}
	if !known {
		return fmt.Errorf("%w: an answer to nothing", errWire)
	}
	return nil
}

// end has all calls return that wait.
func (c *conversation) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = err
	for _, to := range c.waiting {
		close(to)
	}
	clear(c.waiting)
}

// tell sends a message that is not answered.
func (c *conversation) tell(k kind, body any) error { return c.send(message{Kind: k}, body, noFD) }

// noFD is no descriptor.
const noFD = -1

func (c *conversation) send(m message, body any, fd int) (err error) {
	if body != nil {
		if m.Body, err = json.Marshal(body); err != nil {
			return fmt.Errorf("message %q: %w", m.Kind, err)
		}
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	return send(c.conn, m, fd)
}

// answer answers a call with a body, which may be nil, and a descriptor, or with why it
// was in vain.
func (c *conversation) answer(to message, body any, fd int, failed error) error {
	m := message{Kind: to.Kind, Call: to.Call, Answer: true}
	if failed != nil {
		m.Error, m.Gone, m.Later = failed.Error(), errors.Is(failed, procid.ErrGone), errors.Is(failed, readers.ErrRefused)
	}
	return c.send(m, body, fd)
}

// ask sends a call and waits for its answer, whose body goes to what out points to,
// and whose descriptor is the caller's.
func (c *conversation) ask(ctx context.Context, k kind, body any, fd int, out any) (*os.File, error) {
	to := make(chan reply, 1)
	c.mu.Lock()
	if c.ended != nil {
		defer c.mu.Unlock()
		return nil, c.ended
	}
	c.number++
	number := c.number
	c.waiting[number] = to
	c.mu.Unlock()
	if err := c.send(message{Kind: k, Call: number}, body, fd); err != nil {
		c.forget(number)
		return nil, err
	}
	select {
	case r, ok := <-to:
		if !ok {
			return nil, c.why()
		}
		return r.open(out)
	case <-ctx.Done():
		c.forget(number)
		select { // it may just have come
		case r, ok := <-to:
			if ok && r.file != nil {
				_ = r.file.Close()
			}
		default:
		}
		return nil, fmt.Errorf("no answer to %q: %w", k, ctx.Err())
	}
}

func (c *conversation) forget(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, number)
}

func (c *conversation) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// maxError bounds what is believed of the other side's reasons.
const maxError = 1 << 10

// remoteError is why a call was in vain, in the words of the other side. It is of a kind
// that callers here tell apart; nil: of none.
type remoteError struct {
	text string
	kind error
}

func (e remoteError) Error() string { return e.text }
func (e remoteError) Unwrap() error { return e.kind }

func (m message) failure() error {
	e := remoteError{text: strings.ToValidUTF8(m.Error[:min(len(m.Error), maxError)], "?")}
	switch {
	case m.Gone:
		e.kind = procid.ErrGone
	case m.Later:
		e.kind = readers.ErrRefused
	}
	return e
}

func (r reply) open(out any) (*os.File, error) {
	var err error
	switch {
	case r.message.Error != "":
		err = r.message.failure()
	case out != nil:
		err = json.Unmarshal(r.message.Body, out)
	}
	if err != nil && r.file != nil {
		_ = r.file.Close()
		return nil, err
	}
	return r.file, err
}
