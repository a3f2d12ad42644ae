// SPDX-License-Identifier: Apache-2.0

// Command attuned is the Application Controller of a node, as a service: it
// finds the processes of registered applications, and takes those that a batch
// system hands over.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/readers"
)

func main() {
	readers.ServeIfAsked(discover.Operations()...)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == child.Word {
		return serveSession(stderr)
	}
	if len(args) > 0 && args[0] == child.GuardWord {
		return child.ServeGuard(args[1:], os.Stdin, stdout, stderr)
	}
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
		if settings.policyMissing() {
			_, _ = fmt.Fprintf(stdout, "there is no policy %s: nothing is touched\n", settings.policy)
		}
		return exitcode.OK
	}
	level := new(slog.LevelVar)
	level.Set(settings.level)
	log := logging.Service(stderr, settings.logFormat, level)
	if err = serveNode(settings, args, level, log); err != nil {
		log.Error("attuned ends", "error", err)
		return exitcode.Failure
	}
	return exitcode.OK
}
