// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/local"
)

const (
	// holdPatience is how long a controller in the background may take to be
	// ready.
	holdPatience = 20 * time.Second
	// firstPointPatience is how long it waits for its first point, and
	// lastPointPause how often it looks whether the last one is gone.
	firstPointPatience = 10 * time.Second
	lastPointPause     = 200 * time.Millisecond
	// readyDescriptor is where it says that it is ready, or why it is not.
	readyDescriptor = 3
)

// newProbeSession takes hold of processes in this process, to measure only.
func newProbeSession(ctx context.Context, p *cli.Env, pids []int, flags holdFlags) (*tuner.Tuner, error) {
	cfg, err := flags.config()
	if err != nil {
		return nil, err
	}
	s, err := tuner.Open(ctx, p, tuner.Options{Settings: cfg, Args: tuner.CommandLine(pids[0]), Probing: true, Running: true, Outside: flags.outside})
	if err != nil {
		return nil, err
	}
	if err = s.Connect(); err == nil {
		s.StartAnalyzer()
		return s, nil
	}
	s.Close()
	return nil, err
}

// hold takes hold of processes, and returns those that have not ended meanwhile when the
// session knows of them.
func hold(ctx context.Context, s *tuner.Tuner, pids []int) (attached []*controller.Attached, running []int32, err error) {
	attached, err = s.AttachAll(ctx, pids)
	if ctx.Err() != nil || err != nil && len(attached) < len(pids) {
		return attached, nil, err
	}
	running, err = awaitKnown(ctx, s, attached, pids)
	return attached, running, err
}

// awaitKnown returns the processes that run when they are those that the session knows of.
func awaitKnown(ctx context.Context, s *tuner.Tuner, attached []*controller.Attached, pids []int) (running []int32, err error) {
	h, err := dialSession(s.Dir.Socket(local.Socket))
	if err != nil {
		return nil, err
	}
	defer h.close()
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	differs := func(a *controller.Attached) bool { return a.Alive() != slices.Contains(h.pids, int32(a.PID())) }
	for {
		if err := h.look(ctx, pids); err != nil {
			return nil, cli.Said(err)
		}
		if len(h.pids) > 0 && !slices.ContainsFunc(attached, differs) {
			return h.pids, nil
		}
		if !beat.Pause(ctx, time.Millisecond) {
			return nil, errors.New("the processes have ended, or do not answer")
		}
	}
}

// letGo ends a session that measured, and leaves its processes as they were.
func letGo(ctx context.Context, s *tuner.Tuner, attached []*controller.Attached) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tuner.EndTimeout)
	defer cancel()
	s.Joined.Settle(ctx)
	s.LeaveAll(ctx, attached)
	s.Joined.Stop(ctx)
	s.Cancel()
	s.Work.Wait()
	s.Close()
}

// newProbeHold is what `attune probe add` leaves in the background.
func newProbeHold(p *cli.Env) *cobra.Command {
	var flags holdFlags
	cmd := &cobra.Command{
		Use: "hold PID...", Short: "Hold processes for attune probe add", Hidden: true,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, err := procs.Parse(args)
			if err != nil {
				return err
			}
			return holdProcesses(cmd.Context(), p, pids, flags)
		},
	}
	flags.declare(cmd)
	return cmd
}

// holdProcesses measures in processes until they have ended or the last point
// is removed.
func holdProcesses(ctx context.Context, p *cli.Env, pids []int, flags holdFlags) error {
	ready := os.NewFile(readyDescriptor, "ready")
	if ready == nil {
		return exitcode.UsageError(errors.New("hold is for attune probe add"), "use attune probe add")
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s, err := newProbeSession(ctx, p, pids, flags)
	if err != nil {
		fmt.Fprintf(ready, "%v\n", err)
		return err
	}
	attached, _, err := hold(ctx, s, pids)
	defer letGo(ctx, s, attached)
	if err != nil {
		fmt.Fprintf(ready, "%v\n", err)
		return err
	}
	fmt.Fprintf(ready, "ready %s\n", s.Dir.Socket(local.Socket))
	_ = ready.Close() // who waited has read it
	awaitNoProbes(ctx, s, attached)
	return nil
}

// awaitNoProbes returns when there is nothing left to measure.
func awaitNoProbes(ctx context.Context, s *tuner.Tuner, attached []*controller.Attached) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() { // ends with ctx at the latest
		defer close(ended)
		tuner.AwaitAll(ctx, attached)
	}()
	all := ended // those that were named; points may be in their children
	look := time.NewTicker(lastPointPause)
	defer look.Stop()
	until := time.Now().Add(firstPointPatience)
	for {
		select {
		case <-all:
			all, until = nil, time.Now()
		case now := <-look.C:
			switch points := s.Joined.Analyzer.Probes().Lasting(); {
			case points > 0:
				until = now
			case now.After(until):
				cancel()
				<-ended
				return
			}
		}
	}
}

// startHolder starts a controller in the background and returns its session.
func startHolder(ctx context.Context, pids []int, flags holdFlags) (*holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	args := []string{"probe", "hold", fmt.Sprintf("--outside=%t", flags.outside), fmt.Sprintf("--%s=%g", settings.KeyBudget, flags.budget)}
	for _, pid := range pids {
		args = append(args, strconv.Itoa(pid))
	}
	cmd := exec.Command(self, args...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = os.Environ(), "/", []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	_ = write.Close() // the end of the other one's shows
	if err := cmd.Process.Release(); err != nil {
		return nil, err
	}
	return awaitHolder(ctx, read, pids)
}

// awaitHolder reads what a controller in the background says when it is ready.
func awaitHolder(ctx context.Context, ready *os.File, pids []int) (*holder, error) {
	if err := ready.SetReadDeadline(time.Now().Add(holdPatience)); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(io.LimitReader(ready, 1<<16)).ReadString('\n')
	socket, isReady := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	switch {
	case isReady:
	case line != "":
		return nil, errors.New(strings.TrimSpace(line))
	default:
		return nil, fmt.Errorf("the controller in the background did not start: %w", err)
	}
	h, err := dialSession(socket)
	if err != nil {
		return nil, err
	}
	return h, cli.Said(h.look(ctx, pids))
}
