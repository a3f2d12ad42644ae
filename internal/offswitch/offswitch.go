// SPDX-License-Identifier: Apache-2.0

// Package offswitch is the file that switches Attune off, for a node or for a
// user. As long as it is there Attune touches no process, and what it had changed
// it has given back. Nothing else about the file matters; its first line says why,
// for people. A file needs no service that could be down, works before the first
// login of a node and from any tool that manages files, and cannot be forgotten
// by a restart.
//
// A Switch has no state: its methods may be called from any goroutine.
package offswitch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/outfile"
	"github.com/attune-hpc/attune/internal/printable"
)

// Path is the file of a node.
const Path = "/etc/attune/off"

// Interval is how often running parts look for the file.
const Interval = 250 * time.Millisecond

// maxReason bounds what is read of the file, in bytes.
const maxReason = 256

// Switch is the file, by its path.
type Switch string

// Off says whether it is there, and the reason that it gives. A directory that
// cannot be looked into has none: whoever runs a program there did not see it.
func (s Switch) Off() (reason string, off bool) {
	if _, err := os.Lstat(string(s)); err != nil {
		return "", false
	}
	return s.reason(), true
}

// reason returns the first line, or that none is given. What is no regular file
// is not read: it might have no end, or none to write to it.
func (s Switch) reason() string {
	const none = "no reason is given"
	file, err := os.OpenFile(string(s), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return none
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return none
	}
	line, _ := bufio.NewReaderSize(file, maxReason).ReadSlice('\n')
	clean := printable.Line(strings.TrimSpace(string(line)))
	if clean == "" {
		return none
	}
	return clean
}

// TurnOff makes the file, or replaces it, in a directory that it makes if need be.
func (s Switch) TurnOff(reason string) error {
	const dirMode, fileMode = 0o755, 0o644
	if err := os.MkdirAll(filepath.Dir(string(s)), dirMode); err != nil {
		return fmt.Errorf("switch off: %w", err)
	}
	if err := outfile.PutDurably(string(s), []byte(reason+"\n"), fileMode); err != nil {
		return fmt.Errorf("switch off: %w", err)
	}
	return nil
}

// TurnOn takes the file away; it reports whether there was one.
func (s Switch) TurnOn() (was bool, err error) {
	err = os.Remove(string(s))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("switch on: %w", err)
	}
	return true, nil
}

// Watch calls changed at each change, with how it is then, until ctx ends. was
// says how it was before.
func Watch(ctx context.Context, every time.Duration, was bool, look func() (string, bool), changed func(reason string, off bool)) {
	compare := func(time.Time) {
		if reason, off := look(); off != was {
			was = off
			changed(reason, off)
		}
	}
	compare(time.Now())
	beat.Tick(ctx, every, compare)
}

// Any looks at several: the first that is off decides.
func Any(switches ...Switch) func() (reason string, off bool) {
	return func() (string, bool) {
		for _, s := range switches {
			if reason, off := s.Off(); off {
				return fmt.Sprintf("%s (%s)", reason, s), true
			}
		}
		return "", false
	}
}
