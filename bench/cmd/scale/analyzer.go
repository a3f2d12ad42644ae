// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/bench/internal/sitecert"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// readyWithin is how long the Analyzer may take to start.
const readyWithin = 20 * time.Second

// analyzer is `attune analyzer serve` as a process of its own.
type analyzer struct {
	command     *exec.Cmd
	address     string
	credentials credentials.TransportCredentials
	conn        *grpc.ClientConn
	people      attunev1.SessionServiceClient
}

// startAnalyzer starts it with a registry and certificates of its own in a folder
// that it makes, and the tunlets of another one.
func startAnalyzer(ctx context.Context, dir, tunlets string) (*analyzer, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	site, err := sitecert.New(dir)
	if err != nil {
		return nil, err
	}
	_, files, err := site.Issue("analyzer", attunev1.Role_ROLE_ANALYZER)
	if err != nil {
		return nil, err
	}
	admin, _, err := site.Issue("admin", attunev1.Role_ROLE_ADMIN)
	if err != nil {
		return nil, err
	}
	node, _, err := site.Issue("node", attunev1.Role_ROLE_NODE) // of which connections are not bounded
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	a := &analyzer{address: net.JoinHostPort("127.0.0.1", port), credentials: authn.New(authn.Options{Identity: node})}
	a.command = exec.CommandContext(ctx, "bin/attune", "analyzer", "serve", "--listen", a.address,
		"--run-dir", filepath.Join(dir, "run"), "--state-dir", filepath.Join(dir, "state"), "--tunlet-dir", tunlets,
		"--tls-ca", files.CA, "--tls-cert", files.Cert, "--tls-key", files.Key, "--log-level", "warn")
	a.command.Stderr = os.Stderr
	if err := serviceuser.Become(ctx, a.command, dir); err != nil {
		return nil, err
	}
	a.command.Cancel = func() error { return a.command.Process.Signal(unix.SIGTERM) }
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	if a.conn, err = grpc.NewClient(a.address, grpc.WithTransportCredentials(authn.New(authn.Options{Identity: admin}))); err != nil {
		return nil, errors.Join(err, a.end())
	}
	a.people = attunev1.NewSessionServiceClient(a.conn)
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if _, err := a.people.ListSessions(ctx, &attunev1.ListSessionsRequest{}, grpc.WaitForReady(true)); err != nil {
		return nil, errors.Join(fmt.Errorf("the Analyzer does not start: %w", err), a.end())
	}
	return a, nil
}

// freePort returns a port that nobody listens at.
func freePort(ctx context.Context) (string, error) {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(lis.Addr().String())
	return port, errors.Join(err, lis.Close())
}

// dial makes one more connection of a node.
func (a *analyzer) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(a.address, grpc.WithTransportCredentials(a.credentials))
}

// register registers an application with all tunlets, or those of which there are
// options.
func (a *analyzer) register(ctx context.Context, options map[string]*attunev1.TunletOptions) (string, error) {
	done, err := a.people.StartSession(ctx, &attunev1.StartSessionRequest{Registration: &attunev1.Registration{
		Executable: "solver", Mode: "tune", Tunlets: slices.Sorted(maps.Keys(options)), TunletOptions: options,
	}})
	return done.GetRegistration().GetId(), err
}

// usage is what has been taken so far.
type usage struct {
	at         time.Time
	cpu, own   float64 // seconds, of the Analyzer and of this process
	residentMB float64 // of the Analyzer
	tunlets    struct {
		processes int
		cpu, mb   float64 // seconds; memory with what they share divided among them
	}
}

// usage asks the kernel.
func (a *analyzer) usage() (u usage, err error) {
	u.at = time.Now()
	all, err := procid.List()
	if err != nil {
		return u, err
	}
	for _, pid := range all {
		stat, err := procid.ReadStat(pid)
		cpu := float64(stat.UserTicks+stat.SystemTicks) / procid.TicksPerSecond
		switch {
		case err != nil: // it has ended
		case pid == a.command.Process.Pid:
			u.cpu, u.residentMB = cpu, float64(stat.ResidentPages)*float64(os.Getpagesize())/(1<<20)
		case pid == os.Getpid():
			u.own = cpu
		case stat.ParentPID == a.command.Process.Pid:
			memory, err := procid.ReadField(procid.Path(pid, "smaps_rollup"), "Pss")
			if err != nil {
				return u, fmt.Errorf("memory of process %d: %w", pid, err)
			}
			u.tunlets.processes++
			u.tunlets.cpu += cpu
			u.tunlets.mb += float64(memory) / (1 << 20)
		}
	}
	if u.residentMB == 0 {
		return u, errors.New("the Analyzer has ended")
	}
	return u, nil
}

// reports asks the Analyzer for its sessions' reports.
func (a *analyzer) reports(ctx context.Context) (all []*report.Report, err error) {
	list, err := a.people.ListSessions(ctx, &attunev1.ListSessionsRequest{})
	if err != nil {
		return nil, err
	}
	for _, s := range list.GetSessions() {
		shown, err := a.people.ShowSession(ctx, &attunev1.ShowSessionRequest{Id: s.GetId()}, grpc.MaxCallRecvMsgSize(attunev1.MaxAnswer))
		if err != nil {
			return nil, err
		}
		r := new(report.Report)
		if err := json.Unmarshal(shown.GetReport(), r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// served is what the Analyzer's reports say of all sessions.
type served struct {
	hosts            map[string]bool // with a process that runs
	processes        int             // that run
	aggregates, lost uint64          // taken, and lost events
}

// served asks for it.
func (a *analyzer) served(ctx context.Context) (served, error) {
	s := served{hosts: make(map[string]bool)}
	all, err := a.reports(ctx)
	for _, r := range all {
		s.aggregates += r.Events.Aggregates
		s.lost += r.Events.Lost.Total()
		for _, p := range r.Processes {
			if p.EndedSeconds == nil {
				s.hosts[p.Host] = true
				s.processes++
			}
		}
	}
	return s, err
}

// woken counts the sessions in which a tunlet was of use.
func (a *analyzer) woken(ctx context.Context) (n int, err error) {
	all, err := a.reports(ctx)
	for _, r := range all {
		if slices.ContainsFunc(r.Tunlets, func(t report.Tunlet) bool { return t.State != tunlethost.StateAsleep }) {
			n++
		}
	}
	return n, err
}

// end ends it.
func (a *analyzer) end() error {
	if a.conn != nil {
		_ = a.conn.Close()
	}
	if err := a.command.Process.Signal(unix.SIGTERM); err != nil {
		return err
	}
	return a.command.Wait()
}
