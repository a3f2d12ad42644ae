// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"io/fs"
	"os"

	"github.com/attune-hpc/attune/controller/shm"
)

// What is beside the socket of a gate at which processes need not wait
// (dmlib_gate.h).
const (
	// EarlySocket follows the gate's path: there they leave their memory files.
	EarlySocket = ".early"
	// EarlyHeaders follows the gate's path: a file with shm.Headers.
	EarlyHeaders = ".headers"
)

// othersHeaders is the mode of the file with the headers where other users' processes
// read it.
const othersHeaders = 0o644

// SetEarly says whether new processes may bring their memory files and wait for
// nobody: whether nothing has to be in place before their main. A process that
// starts after it has returned obeys. At first they may if Options.Early is there.
// The sign is the name of the file with the headers.
func (g *Gate) SetEarly(may bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		return nil
	}
	shown, hidden := g.headers()
	if may {
		return unlessMissing(os.Rename(hidden, shown))
	}
	return unlessMissing(os.Rename(shown, hidden))
}

// headers are the names of the file with the headers, while new processes may come
// early and while they may not.
func (g *Gate) headers() (shown, hidden string) {
	shown = g.options.Path + EarlyHeaders
	return shown, shown + ".not-now"
}

// writeHeaders writes it, not to be found yet. Whoever made Options.Early has.
func (g *Gate) writeHeaders() error {
	if g.options.Early != nil || g.early == nil {
		return nil
	}
	_, hidden := g.headers()
	if err := os.WriteFile(hidden, shm.Headers(g.options.geometry), privateSocket); err != nil || g.options.Mode == 0 {
		return err
	}
	return os.Chmod(hidden, othersHeaders) // others' processes come, too
}

// removeHeaders leaves nothing behind.
func (g *Gate) removeHeaders() {
	shown, hidden := g.headers()
	_, _ = os.Remove(shown), os.Remove(hidden) // one is not there, or the folder is gone
}

// unlessMissing drops the error that a file is not there: its name says already what
// it is to say.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
