// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// ttl is how long an Analyzer's leases outlive it: as no test waits for one to
// be believed dead, nobody is, however long its renewal takes.
const ttl = time.Hour

// place is a site: a CA, a registry, and Analyzers in this process.
type place struct {
	t       *testing.T
	pki     *pkitest.Site
	node    *pki.Identity
	own     *pki.Identity // of Analyzers
	admin   *pki.Identity
	server  *embed.Server
	records *registry.Client // of the test's own
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, pki: pkitest.New(t)}
	p.node, p.own = p.pki.Node(t, "n1"), p.pki.Analyzer(t, "head")
	p.admin = pkitest.Open(t, p.pki.Issue(t, pki.Request{Name: "admin", Role: attunev1.Role_ROLE_ADMIN}))
	var err error
	p.server, err = embed.Start(embed.Options{Dir: filepath.Join(t.TempDir(), "registry"), Listen: "127.0.0.1:0", Identity: p.own})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.server.Close() })
	p.records = p.connect()
	return p
}

// connect opens the registry.
func (p *place) connect() *registry.Client {
	p.t.Helper()
	c, err := registry.Open(p.t.Context(), registry.Options{URL: p.server.URL(), Identity: p.own, TTL: ttl})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(c.Close)
	return c
}

// running is an Analyzer that serves.
type running struct {
	*Service

	address string
	end     func()       // as a signal does
	ahead   atomic.Int64 // how far its clock is ahead
	deaf    atomic.Bool  // the registry takes no records of sessions from it
}

// pass lets as much time pass as a session without processes waits for more.
func (r *running) pass() { r.ahead.Add(int64(patience.Limit)) }

// analyzer starts an Analyzer.
func (p *place) analyzer(id string, change func(*Config)) *running {
	p.t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	cfg := Config{
		Record:   &attunev1.AnalyzerRecord{Id: id, Host: "host-" + id, Addresses: []string{lis.Addr().String()}},
		Registry: p.connect(), ReportDir: filepath.Join(p.t.TempDir(), "reports"), TunletDirs: []string{p.t.TempDir()},
		// However long a controller takes; see running.pass.
		Linger: patience.Limit, Grace: patience.Limit,
	}
	if change != nil {
		change(&cfg)
	}
	r := &running{address: lis.Addr().String()}
	if r.Service, err = New(cfg); err != nil {
		p.t.Fatal(err)
	}
	r.router.now = func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }
	server := channel.NewServer(authn.New(authn.Options{Identity: p.own}))
	send := r.router.recorder.send
	r.router.recorder.send = func(ctx context.Context, record *attunev1.SessionRecord) error {
		if r.deaf.Load() {
			return errors.New("deaf")
		}
		return send(ctx, record)
	}
	channels := r.Register(server)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			p.t.Errorf("analyzer %s: %v", id, err)
		}
	})
	wg.Go(func() { _ = server.Serve(lis) })
	r.end = sync.OnceFunc(func() {
		cancel()
		server.Stop()
		channels.Wait()
		wg.Wait()
	})
	p.t.Cleanup(r.end)
	return r
}

// as returns a connection to an Analyzer.
func (p *place) as(who *pki.Identity, a *running) *grpc.ClientConn {
	p.t.Helper()
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(authn.New(authn.Options{Identity: who})))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// people returns the SessionService as somebody.
func (p *place) people(who *pki.Identity, a *running) attunev1.SessionServiceClient {
	return attunev1.NewSessionServiceClient(p.as(who, a))
}

// controller is a scripted Application Controller.
type controller struct {
	t      *testing.T
	hello  *attunev1.ControllerHello
	cancel context.CancelFunc
	events grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse]
	manage grpc.BidiStreamingClient[attunev1.ManageRequest, attunev1.ManageResponse]

	requests chan *attunev1.ManageResponse
	ended    chan error // why the management channel ended
}

// dial connects a node's controller; it leaves when it is asked to.
func (p *place) dial(a *running, hello *attunev1.ControllerHello, processes ...uint64) *controller {
	p.t.Helper()
	return p.dialAs(p.node, a, hello, processes...)
}

// dialAs connects somebody's controller.
func (p *place) dialAs(who *pki.Identity, a *running, hello *attunev1.ControllerHello, processes ...uint64) *controller {
	p.t.Helper()
	return p.dialOn(p.as(who, a), hello, processes...)
}

func (p *place) dialOn(conn *grpc.ClientConn, hello *attunev1.ControllerHello, processes ...uint64) *controller {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	c := &controller{
		t: p.t, hello: hello, cancel: cancel, requests: make(chan *attunev1.ManageResponse, 1000), ended: make(chan error, 1),
	}
	var err error
	if c.events, err = attunev1.NewEventServiceClient(conn).Publish(ctx); err != nil {
		p.t.Fatal(err)
	}
	if c.manage, err = attunev1.NewManagementServiceClient(conn).Manage(ctx); err != nil {
		p.t.Fatal(err)
	}
	c.send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: hello}})
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: &attunev1.StreamHello{
		ControllerId: hello.GetControllerId(), Host: hello.GetHost(), Registration: hello.GetRegistration(), Job: hello.GetJob(), User: hello.GetUser(), Processes: processes,
		Protocol: hello.GetProtocol(),
	}}})
	go c.receive()
	for _, handle := range processes {
		c.start(handle)
	}
	return c
}

func (c *controller) send(m *attunev1.ManageRequest)     { _ = c.manage.Send(m) }
func (c *controller) publish(m *attunev1.PublishRequest) { _ = c.events.Send(m) }

// start tells of a process, whose pid is its handle.
func (c *controller) start(handle uint64) {
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: int32(handle)}, Host: c.hello.GetHost(), Uid: 4711,
		Executable: "/bin/solver", CommandLine: []string{"solver", "in.dat"},
	}}})
}

// stop tells that a process has ended well.
func (c *controller) stop(handle uint64) {
	status := int32(0)
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{
		Process: handle, WaitStatus: &status,
	}}})
}

// receive keeps requests, and leaves at the last one.
func (c *controller) receive() {
	for {
		r, err := c.manage.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			c.ended <- err
			return
		}
		c.requests <- r
		if r.GetEnd() != nil {
			c.leave()
		}
	}
}

// leave ends the channels as a controller does that has nothing more to do.
func (c *controller) leave() {
	_, _ = c.events.CloseAndRecv()
	_ = c.manage.CloseSend()
}

// why returns how the management channel ended.
func (c *controller) why() error {
	c.t.Helper()
	return patience.Receive(c.t, "end of the channel", c.ended)
}

// request returns the first request that fits. Leases are renewed all the time meanwhile.
func (c *controller) request(fits func(*attunev1.ManageResponse) bool) (r *attunev1.ManageResponse) {
	c.t.Helper()
	patience.Until(c.t, "a request", func() bool {
		r = patience.Receive(c.t, "request", c.requests)
		return fits(r)
	})
	return r
}
