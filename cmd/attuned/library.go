// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/rundir"
)

// prober finds variables without symbol.
func prober() *hidden.Prober {
	probe, _ := dmlib.LoadProbe() // absent: they are not found
	return &hidden.Prober{Helper: probe, Dir: rundir.Current().VariablesDir()}
}

// installLibrary puts DMLib where programs find it; without it the controller
// does what uprobes and /proc allow.
func installLibrary(dir string, log *slog.Logger) string {
	dir = filepath.Join(dir, "lib")
	const public = 0o755 // programs of all users load it
	err := os.MkdirAll(dir, public)
	if err == nil {
		err = os.Chmod(dir, public) // whatever the umask
	}
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
