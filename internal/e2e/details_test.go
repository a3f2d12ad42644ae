// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// heldUp connects two sockets and fills the connection, and a pipe; then it waits.
const heldUp = `
import os, socket, threading, time
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
threading.Thread(target=time.sleep, args=(3,)).start()
time.sleep(3)
`

// A tunlet of the SDK sees what it asked for of a program that nobody prepared:
// threads, connections, pipes and memory, from the tunlet by way of the Analyzer
// to the controller and back.
func TestDetailsOfAProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "go", "build", "-o", filepath.Join(dir, "attune-tunlet-looker"), "./internal/looker")
	_, r := runTuned(t, []string{"--tunlet-dir", dir, "--tunlet", "looker"}, "python3", "-c", heldUp)
	said := map[string]bool{}
	for _, m := range r.Remarks {
		if m.From == "looker" {
			said[m.Text] = true
		}
	}
	for _, want := range []string{
		"writes", "thread python3 of 2", "established with 127.0.0.1, unsent true", "established with 127.0.0.1, unsent false",
		"listen with , unsent false", "memory",
	} {
		if !said[want] {
			t.Errorf("the tunlet did not see %q: %v", want, said)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(text string) bool { return strings.HasPrefix(text, "pipe ") }) {
		t.Errorf("the tunlet saw no full pipe: %v", said)
	}
}
