// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/counter"
	"github.com/attune-hpc/attune/bench/internal/nodecert"
	"github.com/attune-hpc/attune/internal/authn"
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

// startAnalyzer starts it with a registry and certificates of its own.
func startAnalyzer(ctx context.Context, dir string) (*analyzer, error) {
	identity, files, err := nodecert.New(dir)
	if err != nil {
		return nil, err
	}
	if err := counter.BuildTunlet(ctx, dir); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	a := &analyzer{address: net.JoinHostPort("127.0.0.1", port), credentials: authn.New(authn.Options{Identity: identity})}
	a.command = exec.CommandContext(ctx, "bin/attune", "analyzer", "serve", "--listen", a.address,
		"--run-dir", filepath.Join(dir, "run"), "--state-dir", filepath.Join(dir, "state"), "--tunlet-dir", dir,
		"--tls-ca", files.CA, "--tls-cert", files.Cert, "--tls-key", files.Key, "--log-level", "warn")
	a.command.Stderr = os.Stderr
	a.command.Cancel = func() error { return a.command.Process.Signal(unix.SIGTERM) }
	if err := a.command.Start(); err != nil {
		return nil, err
	}
	if a.conn, err = a.dial(); err != nil {
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

// dial makes one more connection.
func (a *analyzer) dial() (*grpc.ClientConn, error) {
	return grpc.NewClient(a.address, grpc.WithTransportCredentials(a.credentials))
}

// register registers an application whose tunlet asks for so many points.
func (a *analyzer) register(ctx context.Context, points int) (string, error) {
	var names []string
	for i := range points {
		names = append(names, "solver:step"+strconv.Itoa(i))
	}
	done, err := a.people.StartSession(ctx, &attunev1.StartSessionRequest{Registration: &attunev1.Registration{
		Executable: "solver", Mode: "tune", Tunlets: []string{"bench"},
		TunletOptions: map[string]*attunev1.TunletOptions{"bench": {Values: map[string]string{"points": strings.Join(names, " ")}}},
	}})
	return done.GetRegistration().GetId(), err
}

// account is what the Analyzer has taken and done so far.
type account struct {
	at               time.Time
	cpu, own         float64 // seconds, of the Analyzer and of this process
	residentMB       float64
	aggregates, lost uint64
}

// account asks the kernel, and the Analyzer for its sessions' reports.
func (a *analyzer) account(ctx context.Context) (account, error) {
	out := account{at: time.Now()}
	list, err := a.people.ListSessions(ctx, &attunev1.ListSessionsRequest{})
	if err != nil {
		return out, err
	}
	for _, s := range list.GetSessions() {
		shown, err := a.people.ShowSession(ctx, &attunev1.ShowSessionRequest{Id: s.GetId()}, grpc.MaxCallRecvMsgSize(64<<20))
		if err != nil {
			return out, err
		}
		var r report.Report
		if err := json.Unmarshal(shown.GetReport(), &r); err != nil {
			return out, err
		}
		out.aggregates += r.Events.Aggregates
		out.lost += r.Events.Lost.Total()
	}
	stat, err := statOf(a.command.Process.Pid)
	if err != nil {
		return out, err
	}
	self, err := statOf(os.Getpid())
	if err != nil {
		return out, err
	}
	out.cpu, out.own = stat.CPUTime(), self.CPUTime()
	out.residentMB = float64(stat.ResidentMemory()) / (1 << 20)
	return out, nil
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
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
