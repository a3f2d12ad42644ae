// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// heldUp connects two sockets and fills the connection, and a pipe; then it waits
// for the end of its input.
const heldUp = `
import os, socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
two, _ = listener.accept()
one.setblocking(False)
try:
    while True:
        one.send(b"x" * 65536)
except BlockingIOError:
    pass
read, write = os.pipe()
os.write(write, b"x" * 65536)
threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.stdin.read()
`

// A tunlet of the SDK sees what it asked for of a program that nobody prepared:
// threads, connections, pipes and memory, from the tunlet by way of the Analyzer
// to the controller and back.
func TestDetailsOfAProgram(t *testing.T) {
	dir := ownDir(t)
	run(t, "go", "build", "-o", filepath.Join(dir, "attune-tunlet-looker"), "./internal/looker")
	p, _ := startTuned(t, []string{"--tunlet-dir", dir, "--tunlet", "looker"}, "python3", "-c", heldUp)
	for _, want := range []string{
		"writes", "thread python3 of 2", "established with 127.0.0.1, unsent true", "established with 127.0.0.1, unsent false",
		"listen with , unsent false", "memory", "pipe ",
	} {
		err := p.await(t, condition{"remarked: " + want, func(entries []report.Entry) bool {
			return slices.ContainsFunc(entries, func(e report.Entry) bool {
				return e.Kind == "remark" && e.Tunlet == "looker" && strings.HasPrefix(e.Text, want)
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}
