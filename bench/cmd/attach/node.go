// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/local"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// patience bounds whatever is waited for: what takes longer has failed.
const patience = 20 * time.Second

// node is an Analyzer and a controller in this process, joined as in
// `attune probe`, and a client such as its second instance would be.
type node struct {
	attunev1.ProbeServiceClient

	dir    string
	joined *local.Session
	conn   *grpc.ClientConn
}

// newNode starts one. Without the library, processes are watched from outside.
func newNode(ctx context.Context, inside bool) (n *node, err error) {
	n = &node{}
	if n.dir, err = os.MkdirTemp("", "attune-bench-"); err != nil {
		return nil, err
	}
	o := local.Options{
		Dir: n.dir, JobID: "bench-" + filepath.Base(n.dir),
		Analyzer: analyzer.Config{Mode: "observe", NoTunlets: true},
		Controller: controller.Config{
			GatePath: filepath.Join(n.dir, "gate"), StateDir: filepath.Join(n.dir, "state"), UseBPF: true, Budget: 1,
		},
	}
	if inside {
		o.LibraryDir = n.dir
	}
	if n.joined, err = local.New(o); err != nil {
		return nil, err
	}
	if n.conn, err = grpc.NewClient(n.joined.Address(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, err
	}
	n.ProbeServiceClient = attunev1.NewProbeServiceClient(n.conn)
	if err := n.joined.Start(context.WithoutCancel(ctx)); err != nil { // ends with close
		return nil, err
	}
	return n, n.joined.Analyzer.Start(ctx)
}

// close ends the node. What it placed is taken out.
func (n *node) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := n.conn.Close()
	n.joined.Stop(ctx)
	return errors.Join(err, n.joined.Close(), os.RemoveAll(n.dir))
}

// knows waits until the Analyzer knows of a process.
func (n *node) knows(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		list, err := n.ListProbes(ctx, &attunev1.ListProbesRequest{})
		if err != nil {
			return err
		}
		for _, known := range list.GetPids() {
			if int(known) == pid {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d is not known: %w", pid, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// program is a program that runs until its standard input ends.
type program struct {
	cmd *exec.Cmd
	end func() error
}

// start runs a program until it says that it is ready.
func start(ctx context.Context, command, env []string) (*program, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdin, stdout, err := measure.StartPiped(cmd)
	if err != nil {
		return nil, err
	}
	_, err = stdout.Read(make([]byte, 16)) // "ready"
	if err != nil {
		return nil, err
	}
	child, err := procid.Open(cmd.Process.Pid)
	return &program{cmd, func() error {
		// Their parent is their tracer as well, which takes points back meanwhile: to wait
		// for the child itself would take the tracer's stops.
		return errors.Join(stdin.Close(), child.Wait(ctx), child.Close(), cmd.Wait())
	}}, err
}
