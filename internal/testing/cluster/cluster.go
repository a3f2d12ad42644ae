// SPDX-License-Identifier: Apache-2.0

// Package cluster makes a cluster on this machine for tests and benchmarks: nodes
// in namespaces with a real batch system, by scripts/cluster. It needs root and the
// packages of `scripts/deps site`.
package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options says what cluster is wanted.
type Options struct {
	// Repository is the path of this repository; empty: the working folder.
	Repository string
	// Batch is the batch system: slurm (also if empty), gridengine or none.
	Batch string
	// Setup is a bash file that is sourced on each node before the batch system
	// starts; empty: none. See scripts/cluster.
	Setup string
	// Keep names folders below /tmp that the nodes see as well.
	Keep []string
}

// Login is the name of the node that jobs are submitted on, Alice and Bob the
// users that there are besides root.
const (
	Login = "login"
	Alice = "alice"
	Bob   = "bob"
)

// startTime bounds how long a cluster may take to come up. The script gives up by
// itself before, and says what did not come up.
const startTime = 5 * time.Minute

// Cluster is one that runs. It may be used by many goroutines.
type Cluster struct {
	script string
	cmd    *exec.Cmd
	stdin  io.Closer
	once   sync.Once
}

// Start makes a cluster and returns when all of its nodes take jobs. It is gone
// when it is closed, when ctx ends, and when this process ends, whatever way.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	script, err := filepath.Abs(filepath.Join(o.Repository, "scripts", "cluster"))
	if err != nil {
		return nil, err
	}
	// It ends with its standard input.
	c := &Cluster{script: script, cmd: exec.CommandContext(ctx, script, append(o.flags(), "--", "sh", "-c", "echo ready; cat >/dev/null")...)}
	var stderr bytes.Buffer
	c.cmd.Stderr = &stderr
	c.cmd.WaitDelay = time.Second
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", script, err)
	}
	late := time.AfterFunc(startTime, func() { _ = c.cmd.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadString('\n') // what went wrong is on stderr
	inTime := late.Stop()
	if inTime && line == "ready\n" {
		return c, nil
	}
	c.Close()
	if !inTime {
		return nil, fmt.Errorf("make a cluster: it does not come up within %s: %s", startTime, strings.TrimSpace(stderr.String()))
	}
	return nil, fmt.Errorf("make a cluster: %s", strings.TrimSpace(stderr.String()))
}

func (o Options) flags() []string {
	var flags []string
	if o.Batch != "" {
		flags = append(flags, "--batch", o.Batch)
	}
	if o.Setup != "" {
		flags = append(flags, "--setup", o.Setup)
	}
	for _, folder := range o.Keep {
		flags = append(flags, "--keep", folder)
	}
	return flags
}

// Command returns a command that is run on a node by a user; an empty user is
// root. When ctx ends, it is killed; what it submitted is not.
func (c *Cluster) Command(ctx context.Context, user, node string, command ...string) *exec.Cmd {
	args := []string{"--join", strconv.Itoa(c.cmd.Process.Pid)}
	if user != "" {
		args = append(args, "--user", user)
	}
	cmd := exec.CommandContext(ctx, c.script, append(append(args, node), command...)...)
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// Run runs a command as Command has it to its end, and returns its standard
// output. The error holds its standard error.
func (c *Cluster) Run(ctx context.Context, user, node string, command ...string) (string, error) {
	cmd := c.Command(ctx, user, node, command...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s on %s: %w\n%s", strings.Join(command, " "), node, err, strings.TrimSpace(stderr.String()))
	}
	return string(stdout), err
}

// WriteFile writes a file on the file system that all nodes share (/home, /srv,
// /etc), readable for everybody.
func (c *Cluster) WriteFile(ctx context.Context, path, text string) error {
	cmd := c.Command(ctx, "", Login, "sh", "-c", `mkdir -p "$(dirname "$0")" && cat >"$0" && chmod a+r "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write %s: %w: %s", path, err, out)
	}
	return nil
}

// Logs returns the ends of what the cluster's daemons have logged, for somebody
// who wants to know why a job did not run.
func (c *Cluster) Logs(ctx context.Context) string {
	text, err := c.Run(ctx, "", Login, "sh", "-c", "tail -n 20 /srv/log/*")
	if err != nil {
		return err.Error()
	}
	return text
}

// Close takes the cluster away with all that runs in it. It may be called often.
func (c *Cluster) Close() {
	c.once.Do(func() {
		_ = c.stdin.Close()
		// What still runs is not asked: the process namespace ends with this one.
		if err := c.cmd.Process.Kill(); err != nil {
			fmt.Fprintln(os.Stderr, "cluster:", err)
		}
		_ = c.cmd.Wait() // killed, as intended
	})
}
