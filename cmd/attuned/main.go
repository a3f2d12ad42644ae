// SPDX-License-Identifier: Apache-2.0

// Command attuned is the Application Controller as a process of its own. It
// serves the start gate for one job and connects to an Analyzer elsewhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/rundir"
)

// stopTimeout bounds how long undoing everything may take at the end.
const stopTimeout = 5 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	settings, err := load(args, stderr)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitcode.OK
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "attuned: %v\n", err)
		return exitcode.Usage
	case settings.version:
		_, _ = fmt.Fprintln(stdout, "attuned", buildinfo.Get().Version)
		return exitcode.OK
	case settings.checkOnly:
		_, _ = fmt.Fprintln(stdout, "configuration is valid")
		return exitcode.OK
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: settings.level}))
	if err := serve(settings, stdout, log); err != nil {
		log.Error("attuned ends", "error", err)
		return exitcode.Failure
	}
	return exitcode.OK
}

// serve runs the controller until a signal. A second signal ends it at once:
// what is then still changed stays in the journal for the next controller.
func serve(s settings, stdout io.Writer, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	config := s.controller
	config.Log, config.Version = log, buildinfo.Get().Version
	config.LibraryPath = installLibrary(config.StateDir, log)
	probe, _ := dmlib.LoadProbe() // absent: they are not found
	config.Hidden = &hidden.Prober{Helper: probe, Dir: rundir.Current().VariablesDir()}
	c, err := controller.New(config)
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	log.Info("serving", "gate", config.GatePath, "analyzer", config.AnalyzerAddress, "job", config.JobID)
	for _, line := range c.Environment() {
		_, _ = fmt.Fprintln(stdout, line) // what a program of the job needs
	}
	<-ctx.Done()
	stop() // from now on a signal has its ordinary effect
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return c.Stop(ctx)
}

// installLibrary puts DMLib where programs find it; without it the controller
// does what uprobes and /proc allow.
func installLibrary(dir string, log *slog.Logger) string {
	dir = filepath.Join(dir, "lib")
	err := os.MkdirAll(dir, 0o755) // programs of all users load it
	var path string
	if err == nil {
		path, err = dmlib.Install(dir)
	}
	if err != nil {
		log.Warn("programs cannot be preloaded", "error", err)
		return ""
	}
	return path
}
