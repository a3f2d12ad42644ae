// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// analyzers is the far end of those that are told of registrations: it refuses
// some, and takes the next.
type analyzers struct {
	attunev1.UnimplementedSessionServiceServer

	mu     sync.Mutex
	refuse int
	asked  []string // registrations, by id
}

func (a *analyzers) StartSession(_ context.Context, r *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.GetRegistration().GetId())
	if slices.Contains(r.GetRegistration().GetTunlets(), "nosuch") {
		return nil, status.Error(codes.InvalidArgument, "no tunlet nosuch")
	}
	if len(a.asked) <= a.refuse {
		return nil, status.Error(codes.Unavailable, "busy")
	}
	return &attunev1.StartSessionResponse{Registration: r.GetRegistration()}, nil
}

// mustServe serves at a socket until the test ends, outside of any bubble: who
// waits for an answer there does not make time pass.
func (a *analyzers) mustServe(t *testing.T) (address string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(authn.New(authn.Options{})))
	attunev1.RegisterSessionServiceServer(server, a)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "unix:" + path
}

// always says that a registration is needed.
func always() bool { return true }

// A handed over job is told of until an Analyzer takes it, by one teller.
func TestRegistersUntilTaken(t *testing.T) {
	far := &analyzers{refuse: 2}
	address := far.mustServe(t)
	inBubble(t, func(b *bench) {
		b.registrations.credentials = authn.New(authn.Options{})
		asked := 0
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			if asked++; asked == 1 {
				return nil, nil // none is there yet
			}
			return []*attunev1.AnalyzerRecord{{Id: "far", Host: "elsewhere", Addresses: []string{"unix:/of/another/host"}},
				{Id: "near", Host: "host", Addresses: []string{address}}}, nil
		}
		r := &attunev1.Registration{Id: "slurm-12-1000"}
		b.registrations.register(r, always)
		b.registrations.register(r, always)
		b.workers.group.Wait()
		if asked != 4 || len(far.asked) != 3 || far.asked[2] != r.GetId() {
			t.Errorf("the registry was asked %d times, the Analyzer for %q", asked, far.asked)
		}
		if _, troubles := b.notes.current(); len(troubles) != 0 {
			t.Errorf("told: %q", troubles)
		}
	})
}

// silence are credentials with which one address never answers, as behind a firewall that
// drops packets.
type silence struct {
	credentials.TransportCredentials

	address string
}

func (s silence) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if "unix:"+conn.RemoteAddr().String() == s.address {
		<-ctx.Done()
	}
	return s.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

func (s silence) Clone() credentials.TransportCredentials { return s }

// An Analyzer that does not answer does not keep the next one from being asked.
func TestRegistersBehindASilentOne(t *testing.T) {
	silent, far := new(analyzers), new(analyzers)
	unreachable, address := silent.mustServe(t), far.mustServe(t)
	inBubble(t, func(b *bench) {
		b.registrations.credentials = silence{authn.New(authn.Options{}), unreachable}
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			return []*attunev1.AnalyzerRecord{{Id: "silent", Host: "host", Addresses: []string{unreachable}}, {Id: "far", Host: "host", Addresses: []string{address}}}, nil
		}
		began := time.Now()
		b.registrations.register(&attunev1.Registration{Id: "slurm-12-1000"}, always)
		b.workers.group.Wait()
		if took := time.Since(began); len(far.asked) != 1 || took > registerTimeout+time.Second {
			t.Errorf("asked for %q after %v", far.asked, took)
		}
	})
}

// A job that asks for what there is not is given up at once, and why is told.
func TestRegistersNothingWrong(t *testing.T) {
	far := new(analyzers)
	address := far.mustServe(t)
	inBubble(t, func(b *bench) {
		b.registrations.credentials = authn.New(authn.Options{})
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			return []*attunev1.AnalyzerRecord{{Id: "near", Host: "host", Addresses: []string{address}}}, nil
		}
		var log strings.Builder
		b.registrations.log = slog.New(slog.NewTextHandler(&log, nil))
		b.registrations.register(&attunev1.Registration{Id: "slurm-12-1000", Owner: &attunev1.Principal{Uid: 1000}, Tunlets: []string{"nosuch"}}, always)
		b.workers.group.Wait()
		if told := log.String(); strings.Count(told, logging.UserKey+"=1000") != strings.Count(told, "\n") || told == "" {
			t.Errorf("lines that are not the user's: %s", told)
		}
		if len(b.notes.troubles) != 1 || b.notes.troubles[0].uid != 1000 {
			t.Errorf("whose troubles: %+v", b.notes.troubles)
		}
		if len(far.asked) != 1 {
			t.Errorf("asked for %q", far.asked)
		}
		if _, troubles := b.notes.current(); len(troubles) != 1 || !strings.Contains(troubles[0].GetText(), "no tunlet nosuch") {
			t.Errorf("told: %q", troubles)
		}
	})
}

// A job that no Analyzer takes is given up after half an hour at the most, which
// is told, and may be handed over again.
func TestRegistersNotForEver(t *testing.T) {
	inBubble(t, func(b *bench) {
		asked, began := 0, time.Now()
		b.registrations.analyzers = func(ctx context.Context) ([]*attunev1.AnalyzerRecord, error) {
			asked++
			<-ctx.Done() // as when the registry is away
			return nil, ctx.Err()
		}
		r := &attunev1.Registration{Id: "slurm-12-1000"}
		b.registrations.register(r, always)
		b.workers.group.Wait()
		if took := time.Since(began); asked != registerTries || took > 30*time.Minute {
			t.Errorf("%d tries in %v, want %d", asked, took, registerTries)
		}
		if _, troubles := b.notes.current(); len(troubles) != 1 || !strings.Contains(troubles[0].GetText(), r.GetId()) {
			t.Errorf("told: %q", troubles)
		}
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			asked = 0
			return nil, errors.New("away")
		}
		b.registrations.register(r, always)
		synctest.Wait()
		if asked != 0 {
			t.Error("handed over again, it is not told of again")
		}
	})
}

// A job whose processes have ended is not told of any more: a user may hand over one after
// the other, for each of which all Analyzers would be asked for a quarter of an hour.
func TestRegistersNothingThatIsOver(t *testing.T) {
	pid, uid := ofUser(t)
	all := mustTuneAll(t)
	inBubble(t, func(b *bench) {
		b.policy = all
		asked := 0
		b.registrations.analyzers = func(context.Context) ([]*attunev1.AnalyzerRecord, error) {
			asked++
			return nil, errors.New("away")
		}
		if _, err := b.handover.takeTask(b.t.Context(), 0, Task{PID: pid, UID: uid, Mode: "tune", Job: TaskJob{Kind: "slurm", ID: "7"}}); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if asked < 2 {
			t.Errorf("Analyzers are looked for %d times", asked)
		}
		b.made[0].end()
		b.after(time.Minute)
		before := asked
		b.after(time.Minute)
		if _, troubles := b.notes.current(); asked != before || len(troubles) != 0 {
			t.Errorf("%d more times, and told: %q", asked-before, troubles)
		}
	})
}

// What is done to a process is the least of what is asked for and what the policy
// allows, and nothing where Attune is switched off.
func TestGranted(t *testing.T) {
	rules, err := policy.Parse("policy.yaml", []byte(`
service:
  - {mode: none, owners: [role:user], executables: [/bin/secret]}
  - {mode: advise, owners: [role:user]}
`))
	if err != nil {
		t.Fatal(err)
	}
	owner := authn.OfUser(1000)
	inBubble(t, func(b *bench) {
		for _, row := range []struct {
			name       string
			policy     *policy.Policy
			uid        uint32
			executable string
			asked      string
			want       string
			untouched  string // part of why nothing is changed
		}{
			{"more than allowed", rules, 1000, "/bin/cat", "tune", "advise", "allows to advise"},
			{"as much", rules, 1000, "/bin/cat", "advise", "advise", "allows to advise"},
			{"less", rules, 1000, "/bin/cat", "observe", "observe", "no more is asked for"},
			{"nothing in particular", rules, 1000, "/bin/cat", "", "advise", "allows to advise"},
			{"what is denied", rules, 1000, "/bin/secret", "observe", "", "rule 1"},
			{"another's", rules, 1001, "/bin/cat", "observe", "", "their own only"},
			{"without a policy", nil, 1000, "/bin/cat", "observe", "", "no rule"},
		} {
			b.policy = row.policy
			got := b.rules.granted(&attunev1.Registration{Owner: owner, Mode: row.asked}, row.uid, row.executable)
			if got.mode != row.want || !strings.Contains(got.untouched(), row.untouched) {
				t.Errorf("%s: %q, untouched because %q; want %q, %q", row.name, got.mode, got.untouched(), row.want, row.untouched)
			}
		}
		b.policy = rules
		b.mainSwitch.turn("maintenance", true)
		if got := b.rules.granted(&attunev1.Registration{Owner: owner}, 1000, "/bin/cat"); got.mode != "" || !strings.Contains(got.reason, "maintenance") {
			t.Errorf("switched off: %+v", got)
		}
	})
	if why := (grant{mode: "tune"}).untouched(); why != "" {
		t.Errorf("nothing is changed though everything is allowed: %s", why)
	}
}

// FuzzTask: whoever connects to the local socket may post anything. What is taken
// can be registered, which the site's registry has the last word about.
func FuzzTask(f *testing.F) {
	for _, text := range []string{
		`{"pid":7,"uid":1000,"mode":"tune","tunlets":["malloc"],"rank":1,"job":{"kind":"slurm","id":"12","step":"0"}}`,
		`{"pid":7,"mode":"observe","job":{"kind":"pbs","id":"12[3].server"}}`,
		`{"pid":7,"mode":"tune","objective":"steps=output:^step","job":{"kind":"pbs","id":"1"}}`,
		`{"pid":7,"mode":"tune","job":{"kind":"sge","id":"1..2"}}`, `{"pid":7,"mode":"tune","job":{"kind":".","id":"1"}}`,
		`{"pid":1,"mode":"tune"}`, `{"pid":7,"mode":"king"}`, `{"uid":-1}`, `null`, `[]`, `{`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var task Task
		if json.Unmarshal(text, &task) != nil || task.validate() != nil {
			return
		}
		r := task.registration()
		if task.PID <= 1 || r.GetMode() == "" || r.GetOwner().GetUid() != task.UID {
			t.Errorf("%+v becomes %v", task, r)
		}
		if err := registry.CheckRegistrationID(r.GetId()); err != nil {
			t.Errorf("%+v is taken: %v", task, err)
		}
	})
}

// ofUser starts a process of a user who is not root: this one, or nobody.
func ofUser(t *testing.T) (pid int, uid uint32) {
	t.Helper()
	if uid = uint32(os.Getuid()); uid == 0 {
		uid = 65534
	}
	return asuser.Sleep(t, uid), uid
}

// A user hands over processes of their own, to run as themselves.
func TestWhoMayHandOver(t *testing.T) {
	pid, user := ofUser(t)
	const roots = 1 // pid 1
	for _, tt := range []struct {
		name string
		by   uint32
		task Task
		may  bool
	}{
		{"their own", user, Task{PID: pid, UID: user}, true},
		{"root, anybody's", 0, Task{PID: pid, UID: user}, true},
		{"root's", user, Task{PID: roots, UID: user}, false},
		{"their own, as root", user, Task{PID: pid, UID: 0}, false},
		{"another user's", user + 1, Task{PID: pid, UID: user}, false},
		{"another user's, as their own", user + 1, Task{PID: pid, UID: user + 1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := mayHandOver(tt.by, tt.task); (err == nil) != tt.may || err != nil && !errors.Is(err, errDenied) {
				t.Errorf("got %v, want allowed: %v", err, tt.may)
			}
		})
	}
}

// TestNobodyAsks: whom the kernel does not name is told nothing, and hands nothing over.
func TestNobodyAsks(t *testing.T) {
	handler := (&local{log: slog.New(slog.DiscardHandler)}).handler()
	for path, method := range map[string]string{"/v1/status": http.MethodGet, ChangesPath: http.MethodGet, "/v1/task": http.MethodPost} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(method, path, strings.NewReader("{}")))
		if answer.Code != http.StatusForbidden {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
}

// TestFloodOfTasks: one user's tasks take nothing from another's, nor from root's.
func TestFloodOfTasks(t *testing.T) {
	synctest.Test(t, floodOfTasks)
}

func floodOfTasks(t *testing.T) {
	l := &local{asks: quota.NewRate[uint32](asksAtOnce, asksEvery), log: slog.New(slog.DiscardHandler)}
	hand := func(uid uint32) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/task", strings.NewReader("no task"))
		answer := httptest.NewRecorder()
		l.handler().ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), peerKey{}, uid)))
		return answer.Code
	}
	var refused atomic.Int32
	var all sync.WaitGroup
	for range 2 * asksAtOnce {
		all.Go(func() {
			if hand(4711) == http.StatusTooManyRequests {
				refused.Add(1)
			}
		})
		if code := hand(0); code != http.StatusBadRequest {
			t.Fatalf("root's: %d", code)
		}
	}
	all.Wait()
	if n := refused.Load(); n < asksAtOnce/2 {
		t.Errorf("%d of %d were refused", n, 2*asksAtOnce)
	}
	if code := hand(4712); code != http.StatusBadRequest {
		t.Errorf("another user's: %d", code)
	}
}
