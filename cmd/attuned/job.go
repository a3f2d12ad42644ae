// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/rundir"
)

// stopTimeout bounds how long undoing everything may take at the end.
const stopTimeout = 5 * time.Second

// serveJob runs the controller of one job until a signal. A second signal ends
// it at once: what is then still changed stays in the journal for the next
// controller.
func serveJob(s settings, stdout io.Writer, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	config := s.jobConfig()
	config.Log, config.Version = log, buildinfo.Get().Version
	config.LibraryPath = installLibrary(config.StateDir, log)
	config.Hidden = prober()
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

// prober finds variables without symbol.
func prober() *hidden.Prober {
	probe, _ := dmlib.LoadProbe() // absent: they are not found
	return &hidden.Prober{Helper: probe, Dir: rundir.Current().VariablesDir()}
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
		log.Warn("DMLib is brought into no program", "error", err)
		return ""
	}
	return path
}
