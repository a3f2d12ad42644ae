// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/internal/tunletbuild"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// testTunlet is built once for all tests.
var testTunlet tunletbuild.Builder

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		testTunlet.Clean()
		os.Exit(code)
	}))
}

// patience bounds the waits of the tests: far above what they need.
const patience = 2 * time.Minute

// run starts an Analyzer on a socket.
func run(t *testing.T, cfg Config) (*Analyzer, string) {
	t.Helper()
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "analyzer.sock")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Serve(context.Background(), lis); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		a.Stop(context.Background())
		wg.Wait()
	})
	if err := a.Start(context.Background()); err != nil {
		t.Logf("start: %v", err)
	}
	return a, socket
}

// until waits until the snapshot is as wanted.
func until(t *testing.T, a *Analyzer, what string, want func(report.Snapshot) bool) report.Snapshot {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		s := a.Snapshot()
		took := time.Since(began)
		if want(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %v: %+v", what, patience, s)
		}
		time.Sleep(max(5*time.Millisecond, 4*took)) // the session has more to do than to answer
	}
}

// state returns a condition on the first proposal's state.
func state(want string) func(report.Snapshot) bool {
	return func(s report.Snapshot) bool { return len(s.Proposals) > 0 && s.Proposals[0].State == want }
}

// finish ends the session and checks the report against the schema.
func finish(t *testing.T, a *Analyzer) *report.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code := int32(0)
	r := a.Finish(ctx, &attunev1.RecordedExit{Code: &code, ProgramCpuNanos: 2e9, Unseen: []*attunev1.RecordedUnseen{{Pid: 4711, Executable: "/bin/brief"}}})
	checkSchema(t, r)
	return r
}

func checkSchema(t *testing.T, r *report.Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	if err := r.WriteJSON(path); err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.NewCompiler().Compile("../docs/reference/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("the report does not fit its schema: %v", err)
	}
}

// TestTwoControllers has equal handles on two nodes.
func TestTwoControllers(t *testing.T) {
	a, socket := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good")}, tick: 20 * time.Millisecond})
	first, second := dial(t, socket, "ac1"), dial(t, socket, "ac2")
	first.start(1, app{slow: 5000, fast: 5000})
	second.start(1, app{slow: 100, fast: 5000})
	until(t, a, "kept", state("kept"))
	second.mu.Lock()
	changed := len(second.changed)
	second.mu.Unlock()
	first.mu.Lock()
	defer first.mu.Unlock()
	if changed != 1 || len(first.changed) != 0 {
		t.Errorf("changed %d and %v, want the second one only", changed, first.changed)
	}
}

// TestFinishRestores ends a session whose process lives on.
func TestFinishRestores(t *testing.T) {
	a, socket := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good")}, tick: 20 * time.Millisecond})
	c := dial(t, socket, "ac1")
	c.start(1, app{slow: 100, fast: 5000})
	until(t, a, "kept", state("kept"))
	r := finish(t, a)
	if r.Changes[0].Verdict != report.VerdictKept || r.Changes[0].UndoneSeconds == nil {
		t.Errorf("change %+v, want it kept and then put back", r.Changes[0])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.changed) > 0 {
		t.Errorf("changes are left in force: %v", c.changed)
	}
}

// TestControllerLost ends a controller in the middle.
func TestControllerLost(t *testing.T) {
	a, socket := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good")}, tick: 20 * time.Millisecond})
	c := dial(t, socket, "ac1")
	c.start(1, app{slow: 100, fast: 5000})
	until(t, a, "kept", state("kept"))
	c.hangUp()
	until(t, a, "the process is out of reach", func(s report.Snapshot) bool { return s.Processes == 0 })
	r := finish(t, a)
	if r.Changes[0].Verdict != report.VerdictKept {
		t.Errorf("change %+v", r.Changes[0])
	}
}

// TestBadTunlets runs a session with tunlets that misbehave beside a good one.
func TestBadTunlets(t *testing.T) {
	for _, bad := range []string{"crashstart", "crashmid", "hang", "badversion", "silent", "flood"} {
		t.Run(bad, func(t *testing.T) {
			a, socket := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good", bad)}, tick: 20 * time.Millisecond})
			c := dial(t, socket, "ac1")
			c.start(1, app{slow: 100, fast: 5000})
			until(t, a, "the good one is not held up", func(s report.Snapshot) bool {
				return slices.ContainsFunc(s.Proposals, func(p report.ProposalState) bool { return p.Tunlet == "good" && p.State == "kept" })
			})
			failed := bad != "silent" && bad != "flood"
			if failed {
				until(t, a, "the bad one has failed", func(s report.Snapshot) bool {
					return slices.ContainsFunc(s.Tunlets, func(tn report.TunletState) bool {
						return tn.Name == bad && tn.Reason != "" && (bad != "hang" || tn.Reason == "no answer to HandleEvents within 5s")
					})
				})
			}
			r := finish(t, a)
			i := slices.IndexFunc(r.Tunlets, func(tn report.Tunlet) bool { return tn.Name == bad })
			if i < 0 || (r.Tunlets[i].Reason != "") != failed {
				t.Errorf("tunlets %+v", r.Tunlets)
			}
			if len(r.Remarks) > 300 || len(r.Points) > 2100 || len(r.Refused) > 300 {
				t.Errorf("the report has %d remarks, %d points, %d refusals", len(r.Remarks), len(r.Points), len(r.Refused))
			}
		})
	}
}

// TestTunletEnvironment asks a tunlet for what it sees of the host.
func TestTunletEnvironment(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	t.Setenv("ATTUNE_SOCKET", "/run/gate.sock")
	a, _ := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "environment")}})
	var text string
	until(t, a, "the remark", func(report.Snapshot) bool {
		for _, r := range a.Report().Remarks {
			text = r.Text
		}
		return strings.Contains(text, "PATH=")
	})
	if strings.Contains(text, "ATTUNE_SOCKET") {
		t.Errorf("environment: %s", text)
	}
}

// TestShortRun ends a session while its tunlets are still starting.
func TestShortRun(t *testing.T) {
	a, _ := run(t, Config{Mode: "tune", TunletDirs: []string{testTunlet.Dir(t, "good", "hangstart")}, Tunlets: []string{"good", "hangstart", "nosuch"}})
	r := finish(t, a)
	if len(r.Tunlets) != 3 || r.Tunlets[2].State != "missing" {
		t.Errorf("tunlets %+v", r.Tunlets)
	}
	for _, tunlet := range r.Tunlets { // it was not waited for
		if strings.Contains(tunlet.Reason, "no answer within") {
			t.Errorf("tunlet %+v", tunlet)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	if _, err := New(Config{Mode: "guess"}); err == nil || !strings.Contains(err.Error(), "observe, advise or tune") {
		t.Errorf("New: %v", err)
	}
	a, err := New(Config{Mode: "tune"})
	if err != nil {
		t.Fatal(err)
	}
	a.Stop(context.Background()) // never started
	a.Stop(context.Background())
}

// TestHelloFirst refuses streams that do not say who they are.
func TestHelloFirst(t *testing.T) {
	_, socket := run(t, Config{Mode: "observe"})
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	events, err := attunev1.NewEventServiceClient(conn).Publish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Send(&attunev1.PublishRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := events.CloseAndRecv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("event channel: %v", err)
	}
	manage, err := attunev1.NewManagementServiceClient(conn).Manage(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := manage.Send(&attunev1.ManageRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("management channel: %v", err)
	}
}
