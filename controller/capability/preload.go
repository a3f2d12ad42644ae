// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// probeTimeout bounds what a probe waits for a program that it starts.
const probeTimeout = 5 * time.Second

// absentLibrary cannot exist: a program preloaded with it shows by the loader's
// complaint that the loader honours LD_PRELOAD.
const absentLibrary = "/proc/self/attune-preload-probe.so"

const remedyPreload = "use dynamically linked programs with the C library's own loader"

// preloadLikely looks for the loader that programs name as their interpreter.
func preloadLikely(_ context.Context, n *node) finding {
	for _, pattern := range []string{"/lib64/ld-linux-*.so.*", "/lib/ld-linux-*.so.*", "/lib/ld-musl-*.so.*"} {
		if found, _ := filepath.Glob(n.path(pattern)); len(found) > 0 {
			return available("loader " + found[0])
		}
	}
	return unavailable("no dynamic loader found", remedyPreload)
}

// preloadTried preloads DMLib into a program, or if that was not given a
// library that does not exist.
func preloadTried(ctx context.Context, n *node) finding {
	library, program, wanted := absentLibrary, "true", filepath.Base(absentLibrary)
	if n.library != "" {
		library, program, wanted = n.library, "cat", filepath.Base(n.library)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, program)
	if n.library != "" {
		command.Args = append(command.Args, "/proc/self/maps")
	}
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "LD_PRELOAD=" + library}
	out, err := command.CombinedOutput()
	if bytes.Contains(out, []byte(wanted)) && (n.library == "" || !bytes.Contains(out, []byte("cannot be preloaded"))) {
		return available("tried on " + command.Path)
	}
	reason := "the loader of " + command.Path + " ignores LD_PRELOAD"
	if err != nil {
		reason = "preloaded program does not run: " + strings.TrimSpace(err.Error())
	}
	return unavailable(reason, remedyPreload)
}

// rebindGOT is work of DMLib, in the process, and needs no help from the node.
func rebindGOT(*node) finding { return available("by DMLib, in preloaded processes") }
