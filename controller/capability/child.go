// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/attune-hpc/attune/internal/objfile"
)

// child is a process of our own to try things on: cat, which waits for input
// and ends with it.
type child struct {
	command *exec.Cmd
	in      io.WriteCloser
	pid     int
}

func startChild() (*child, error) {
	command := exec.Command("cat")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start a process to try on: %w", err)
	}
	c := &child{command: command, in: in, pid: command.Process.Pid}
	// Once it answers it is past exec and the loader: its memory is settled.
	if _, err := io.WriteString(in, "ready\n"); err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
		if err == nil {
			return c, nil
		}
	}
	c.end()
	return nil, errors.New("the process to try on does not answer")
}

func (c *child) end() {
	_ = c.in.Close()
	// Killed as well: a stopped process would not see the end of its input.
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}

// stack returns an address inside the child's stack, whose bytes may be read
// and written back.
func (c *child) stack() (uint64, error) {
	mappings, err := objfile.AllMappings(c.pid)
	if err != nil {
		return 0, err
	}
	for _, m := range mappings {
		if m.Path == "[stack]" {
			return m.End - uint64(os.Getpagesize()), nil // whole, in use: it holds the environment
		}
	}
	return 0, errors.New("the process to try on has no stack")
}
