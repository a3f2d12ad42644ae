// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/attune-hpc/attune/internal/queue"
)

const (
	// pingEvery, with two pings that may be missing, finds a connection that
	// died without a word within 15 seconds.
	pingEvery = 5 * time.Second
	// dialWithin bounds one attempt of many to connect, and onceWithin the only one.
	dialWithin = 3 * time.Second
	onceWithin = 10 * time.Second
	// firstDelay and lastDelay bound the back-off between attempts: a thousand
	// clients that lost one server do not come back at one moment.
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// link is the state of the connection, for those who wait for it or whose work
// ends with it.
type link struct {
	mu sync.Mutex
	// current ends when the connection is lost; nil: there is none.
	current context.Context
	lost    context.CancelFunc
	// up is closed when there is one.
	up chan struct{}
	// listeners are told of each new connection.
	listeners map[queue.Bell]struct{}
}

func (l *link) init() {
	l.up = make(chan struct{})
	l.listeners = make(map[queue.Bell]struct{})
}

// connected begins a connection.
func (l *link) connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		return
	}
	l.current, l.lost = context.WithCancel(context.Background())
	close(l.up)
	for ch := range l.listeners {
		ch.Ring()
	}
}

// down ends it.
func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return
	}
	l.lost()
	l.current, l.up = nil, make(chan struct{})
}

// listen has ch told of new connections, until stop is called.
func (l *link) listen(ch queue.Bell) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners[ch] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listeners, ch)
	}
}

// wait returns a context that ends when the connection is lost. Its error is
// ctx's, or ErrClosed once closed has ended.
func (l *link) wait(ctx, closed context.Context) (context.Context, error) {
	for {
		l.mu.Lock()
		current, up := l.current, l.up
		l.mu.Unlock()
		if closed.Err() != nil {
			return nil, ErrClosed
		}
		if current != nil {
			return current, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-closed.Done():
		case <-up:
		}
	}
}

// dial begins to connect.
func (c *conn) dial(inbox string) (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name(c.options.Name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		// A request that was kept would be made when nobody wants it any more.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), nats.Timeout(dialWithin),
		nats.CustomInboxPrefix(inbox),
		nats.ConnectHandler(func(*nats.Conn) { c.link.connected(); c.log.Info("registry connected") }),
		nats.ReconnectHandler(func(*nats.Conn) { c.link.connected(); c.log.Info("registry connected again") }),
		nats.DisconnectErrHandler(c.disconnected),
		nats.ErrorHandler(c.asyncError),
	}
	if c.options.secured() {
		options = append(options, c.options.secure(c.present, c.verify)...)
	}
	return nats.Connect(c.options.dialOptions(options))
}

// dialOptions returns the addresses as the NATS library wants them.
func (o Options) dialOptions(options []nats.Option) (string, func(*nats.Options) error) {
	servers := o.URL
	if path, ok := strings.CutPrefix(o.URL, unixScheme); ok {
		servers = "nats://127.0.0.1"
		options = append(options, nats.SetCustomDialer(unixDialer(path)), nats.IgnoreDiscoveredServers())
	}
	return servers, func(all *nats.Options) error {
		for _, option := range options {
			if err := option(all); err != nil {
				return err
			}
		}
		return nil
	}
}

// unixDialer is the path of a socket; whatever address is dialled, it is that.
type unixDialer string

// Dial implements nats.CustomDialer.
func (d unixDialer) Dial(string, string) (net.Conn, error) {
	return net.DialTimeout("unix", string(d), dialWithin)
}

// reconnectDelay doubles with each attempt on all servers, half of it by chance.
func reconnectDelay(attempts int) time.Duration {
	delay := lastDelay
	if attempts < 6 {
		delay = firstDelay << max(attempts-1, 0)
	}
	return delay/2 + rand.N(delay/2+1)
}

func (c *conn) disconnected(_ *nats.Conn, err error) {
	c.link.down()
	switch {
	case c.ctx.Err() != nil:
	case c.shown.renewing.Swap(false):
		c.log.Info("registry is connected anew, by the certificate that is there now")
	default:
		c.log.Warn("registry lost, what runs goes on; connecting again", "url", c.options.URL, "error", err)
	}
}

// asyncError gets what no call returns. A subscription that was too slow finds
// what it lost by itself.
func (c *conn) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	c.log.Warn("registry reports a problem", "subject", subject, "error", err)
}
