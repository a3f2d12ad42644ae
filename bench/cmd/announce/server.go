// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/bench/internal/sitecert"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// serveVariable makes this program the registry in the directory that it names,
// so that its memory can be told from that of the nodes.
const serveVariable = "ATTUNE_BENCH_REGISTRY"

// analyzerName is that of the registry's certificate.
const analyzerName = "analyzer"

// serve is the registry until it is told to end. It writes its address.
func serve(dir string) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	identity, err := pki.Open(pki.FilesIn(dir, analyzerName), nil)
	if err == nil {
		var server *embed.Server
		server, err = embed.Start(embed.Options{Dir: filepath.Join(dir, "store"), Listen: "127.0.0.1:0", Identity: identity})
		if err == nil {
			fmt.Println(server.URL())
			<-ctx.Done()
			err = server.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// server is the registry's process.
type server struct {
	command  *exec.Cmd
	url      string
	site     *sitecert.Site
	analyzer *pki.Identity
}

func startServer(ctx context.Context, dir string) (*server, error) {
	site, err := sitecert.New(dir)
	if err != nil {
		return nil, err
	}
	s := &server{command: exec.CommandContext(ctx, "/proc/self/exe"), site: site}
	if s.analyzer, _, err = site.Issue(analyzerName, attunev1.Role_ROLE_ANALYZER); err != nil {
		return nil, err
	}
	s.command.Env = append(os.Environ(), serveVariable+"="+dir)
	s.command.Stderr = os.Stderr
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &s.url); err != nil || !strings.HasPrefix(s.url, "tls://") {
		return nil, fmt.Errorf("registry says %q: %w", s.url, err)
	}
	return s, nil
}

// open is the registry as an Analyzer has it that is there.
func (s *server) open(ctx context.Context) (*registry.Client, error) {
	c, err := registry.Open(ctx, registry.Options{URL: s.url, Identity: s.analyzer, Name: "writer"})
	if err != nil {
		return nil, err
	}
	if _, err := c.Announce(ctx, &attunev1.AnalyzerRecord{Id: analyzerName}, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// openNode is the registry as a node has it.
func (s *server) openNode(ctx context.Context, name string) (*registry.Node, error) {
	identity, _, err := s.site.Issue(name, attunev1.Role_ROLE_NODE)
	if err != nil {
		return nil, err
	}
	return registry.OpenNode(ctx, registry.Options{URL: s.url, Identity: identity, Name: name})
}

func (s *server) end() error {
	if err := s.command.Process.Signal(unix.SIGTERM); err != nil {
		return err
	}
	return s.command.Wait()
}

// residentKB returns the memory that a process has in RAM.
func residentKB(pid int) (float64, error) {
	status, err := procid.ReadStatus(pid)
	return float64(status.Resident) / 1024, err
}
