// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// roleVariable makes this test binary play a tunlet or a host.
const roleVariable = "ATTUNE_SDK_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "host":
		host()
	default:
		sdk.Serve(func() sdk.Tunlet { return newActor(role) })
	}
}

// TestStartedByHand: whoever starts a tunlet as a program is told what to do with it.
func TestStartedByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=quiet")
	out, err := cmd.CombinedOutput()
	if want := "try: attune tunlet test " + os.Args[0]; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %s, want %q", err, out, want)
	}
}

// actor is a tunlet that behaves as its role says.
type actor struct{ role string }

func newActor(role string) sdk.Tunlet {
	if role == "prints" {
		fmt.Println("1|1|tcp|constructor")
	}
	return actor{role}
}

func (a actor) Describe() sdk.Description {
	if a.role == "prints" {
		fmt.Println("describe")
		_, _ = syscall.Write(1, []byte("past the Go runtime's stdout\n"))
	}
	return sdk.Description{Name: a.role}
}

func (a actor) Tick(*sdk.Host) {
	if a.role == "panics" {
		panic("no idea")
	}
}

// host starts a tunlet, prints its pid, and waits to be killed.
func host() {
	_ = os.Setenv(roleVariable, "quiet")
	client, _, err := dial(exec.Command(os.Args[0]), io.Discard)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(client.ReattachConfig().Pid)
	select {}
}

// dial starts a tunlet process as the Analyzer does.
func dial(cmd *exec.Cmd, stderr io.Writer) (*plugin.Client, attunev1.TunletServiceClient, error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: sdk.Handshake, Plugins: plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		Cmd: cmd, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
		Logger: hclog.NewNullLogger(), Stderr: stderr, SyncStdout: io.Discard, SyncStderr: io.Discard,
	})
	protocol, err := client.Client()
	if err != nil {
		return client, nil, err
	}
	raw, err := protocol.Dispense(sdk.PluginName)
	if err != nil {
		return client, nil, err
	}
	return client, raw.(attunev1.TunletServiceClient), nil
}

// start starts this binary as a tunlet of the given role.
func startTunlet(t *testing.T, role string, stderr io.Writer) (*plugin.Client, attunev1.TunletServiceClient) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	client, tunlet, err := dial(cmd, stderr)
	t.Cleanup(client.Kill)
	if err != nil {
		t.Fatal(err)
	}
	return client, tunlet
}

// ends waits for a process' end; a pidfd, unlike a pid, cannot mean another.
func ends(t *testing.T, pidfd int, within time.Duration) {
	t.Helper()
	n, err := 0, error(unix.EINTR) // by Go's own signals
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(within.Milliseconds()))
	}
	if err != nil || n != 1 {
		t.Errorf("process lives on after %v (%v)", within, err)
	}
}

func open(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestPrintsDoNotBreakTheHandshake(t *testing.T) {
	_, tunlet := startTunlet(t, "prints", io.Discard)
	for range 2 {
		d, err := tunlet.Describe(t.Context(), &attunev1.DescribeRequest{})
		if err != nil || d.GetName() != "prints" {
			t.Fatalf("describe: %v %v", d, err)
		}
	}
}

// A batch as large as the Analyzer may have it comes through.
func TestTakesTheLargestCall(t *testing.T) {
	_, tunlet := startTunlet(t, "quiet", io.Discard)
	batch := &attunev1.NamedRecords{Records: make([]byte, sdk.MaxMessage-100)}
	_, err := tunlet.HandleEvents(t.Context(), &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{batch}})
	if status.Code(err) != codes.Unimplemented { // it has no use for records
		t.Errorf("records of %d bytes: %v", len(batch.GetRecords()), err)
	}
}

// lockedBuffer is a buffer that a process' stderr is copied to.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPanicEndsTheProcess(t *testing.T) {
	var stderr lockedBuffer
	client, tunlet := startTunlet(t, "panics", &stderr)
	fd := open(t, client.ReattachConfig().Pid)
	_, err := tunlet.Tick(t.Context(), &attunev1.TickRequest{})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "no idea") {
		t.Errorf("tick: %v, want the panic", err)
	}
	ends(t, fd, time.Minute)
	client.Kill() // waits until stderr has been read
	if got := stderr.String(); !strings.Contains(got, "panic in Tick: no idea") || !strings.Contains(got, "serve_test.go") {
		t.Errorf("stderr %q, want the panic and its stack", got)
	}
}

func TestNoOrphan(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	// The race detector would sleep for a second at exit.
	cmd.Env = append(os.Environ(), roleVariable+"=host", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	pid, convErr := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil || convErr != nil {
		t.Fatalf("host says %q (%v)", line[:n], err)
	}
	fd := open(t, pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	ends(t, fd, time.Minute)
}

func TestSignalsOfTheProcessGroupPassBy(t *testing.T) {
	client, tunlet := startTunlet(t, "quiet", io.Discard)
	fd := open(t, client.ReattachConfig().Pid)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := tunlet.Describe(t.Context(), &attunev1.DescribeRequest{}); err != nil {
			t.Fatalf("after %v: %v", s, err)
		}
	}
	client.Kill()
	ends(t, fd, time.Minute)
}
