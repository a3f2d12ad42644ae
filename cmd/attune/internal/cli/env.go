// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/launch"
)

// Env is what the commands have of the process they run in.
type Env struct {
	Stdout, Stderr io.Writer
	// State and descriptors are what was inherited.
	State       inherit.State
	Descriptors []int
	// Program is how the started program ended; nil: none was started.
	Program *launch.Exit
}

// New returns what this process has.
func New() *Env {
	return &Env{
		Stdout: os.Stdout, Stderr: os.Stderr,
		State: inherit.Get(), Descriptors: launch.Inherited(),
	}
}

// KeepErrors has Stdout keep its first error, which it returns when it is called: what a
// command could not print is told at its end, whichever of its lines that was. A reader that
// has gone wants no more, which is no error.
func (p *Env) KeepErrors() (first func() error) {
	k := &keeper{to: p.Stdout}
	p.Stdout = k
	return k.first
}

// keeper is a writer that keeps its first error. It may be used from any goroutine.
type keeper struct {
	to  io.Writer
	mu  sync.Mutex // guards err
	err error
}

// Write implements io.Writer.
func (k *keeper) Write(text []byte) (int, error) {
	n, err := k.to.Write(text)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.err = cmp.Or(k.err, err)
	}
	return n, err
}

func (k *keeper) first() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// WriteJSON prints a document for programs.
func (p *Env) WriteJSON(document any) error {
	encoder := json.NewEncoder(p.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// Nothing says of a list for people that it is empty, in a sentence that begins with that
// word. What the list would be written to stays empty.
func (p *Env) Nothing(rest string) error {
	_, err := fmt.Fprintf(p.Stderr, "Nothing %s.\n", rest)
	return err
}

// Table returns a writer that lines up what is between tabs, for people; the caller flushes it.
func Table(to io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(to, 0, 8, 2, ' ', 0) }

// Environment is this process's, exactly as it was handed over: os.Environ
// leaves out repeated names.
func Environment() []string {
	text, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return os.Environ()
	}
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Set sets variables in an environment and leaves the rest as it is.
func Set(env, set []string) []string {
	out := append([]string(nil), env...)
next:
	for _, line := range set {
		name, _, _ := strings.Cut(line, "=")
		for i, old := range out {
			if strings.HasPrefix(old, name+"=") {
				out[i] = line
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}
