// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// serveVariable makes this program a registry in the directory that it names.
const serveVariable = "ATTUNE_TEST_REGISTRY"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		os.Exit(serve(dir))
	}
	leaktest.Main(m)
}

// serve is a registry until it is told to end.
func serve(dir string) int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM)
	server, err := embed.Start(embed.Options{Dir: dir, Socket: filepath.Join(dir, "socket")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-end
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a server as a process of its own.
type process struct {
	URL string
	// Dir is where it keeps what it has.
	Dir string

	command func() *exec.Cmd
	running *exec.Cmd
}

// eachServer runs a test with every server that the registry may be at.
func eachServer(t *testing.T, test func(*testing.T, *process)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		p := &process{Dir: filepath.Join(t.TempDir(), "registry")}
		p.URL = "unix:" + filepath.Join(p.Dir, "socket")
		p.command = func() *exec.Cmd {
			c := exec.Command("/proc/self/exe")
			c.Env = append(os.Environ(), serveVariable+"="+p.Dir)
			return c
		}
		runWith(t, p, test)
	})
	t.Run("nats-server", func(t *testing.T) {
		path := targets.NeedCommand(t, "nats-server", "nats-server")
		p := &process{Dir: filepath.Join(t.TempDir(), "nats")}
		port := "-1" // any; later starts take the first one's
		p.command = func() *exec.Cmd {
			if p.URL != "" {
				port = p.URL[len("nats://127.0.0.1:"):]
			}
			return exec.Command(path, "-js", "-sd", p.Dir, "-a", "127.0.0.1", "-p", port, "--ports_file_dir", filepath.Dir(p.Dir))
		}
		runWith(t, p, test)
	})
}

func runWith(t *testing.T, p *process, test func(*testing.T, *process)) {
	t.Helper()
	p.mustStart(t)
	t.Cleanup(func() { p.end(t, unix.SIGTERM) })
	test(t, p)
}

// mustStart starts the server again, or for the first time, and waits until it
// listens.
func (p *process) mustStart(t *testing.T) {
	t.Helper()
	p.running = p.command()
	p.running.Stderr = os.Stderr
	if filepath.Base(p.running.Path) == "nats-server" {
		p.running.Stderr = nil // it chats there
	}
	if err := p.running.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the server to listen", p.listens)
}

// listens says whether clients may come: whether it says who it is.
func (p *process) listens() bool {
	if path, ok := strings.CutPrefix(p.URL, "unix:"); ok {
		conn, err := net.DialTimeout("unix", path, patience.Limit)
		if err != nil {
			return false
		}
		defer conn.Close()
		n, _ := conn.Read(make([]byte, 1)) // its error would be that there is nothing
		return n == 1
	}
	if p.URL != "" {
		return true
	}
	path := filepath.Join(filepath.Dir(p.Dir), fmt.Sprintf("nats-server_%d.ports", p.running.Process.Pid))
	text, err := os.ReadFile(path)
	var ports struct{ Nats []string }
	if errors.Is(err, fs.ErrNotExist) || json.Unmarshal(text, &ports) != nil || len(ports.Nats) == 0 {
		return false
	}
	p.URL = ports.Nats[0]
	return true
}

// end ends the server by a signal.
func (p *process) end(t *testing.T, by unix.Signal) {
	t.Helper()
	if err := p.running.Process.Signal(by); err != nil {
		t.Error(err)
	}
	if err := p.running.Wait(); by == unix.SIGTERM && err != nil && !wantedEnd(err) {
		t.Error(err)
	}
}

// wantedEnd: Debian's server ends with 1 after SIGTERM.
func wantedEnd(err error) bool {
	exit := new(exec.ExitError)
	return errors.As(err, &exit) && exit.ExitCode() == 1
}
