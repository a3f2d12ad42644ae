// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// probeTimeout bounds one process; they need milliseconds, an interpreter tens.
const probeTimeout = 5 * time.Second

const (
	// pipePatience is how long a process that has ended may keep its pipes open
	// by descendants.
	pipePatience = 100 * time.Millisecond
	// stderrBytes of what a process says are kept for the message.
	stderrBytes = 300
	// firstBytes are enough of its first line.
	firstBytes = 64
)

// run tells the object a marker in a process of its own and returns the
// object's data there. The process runs as the owner, within the helper's limits,
// with nothing in its environment but what the variable needs; what it has started
// ends with it.
func (p *Prober) run(ctx context.Context, image objfile.Image, v Variable, owner owner, marker uint64) (parts []data, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	helper, err := p.helperFile()
	if err != nil {
		return nil, err
	}
	defer helper.Close()
	arguments := v.arguments(image.Path, marker)
	if v.Script != nil {
		arguments = append([]string{"-", owner.program}, arguments...)
	}
	cmd := exec.CommandContext(ctx, fmt.Sprintf("/proc/self/fd/%d", helperFD), arguments...)
	cmd.Env = v.environment(marker)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{helper}
	cmd.SysProcAttr = owner.attributes()
	said := bounded.Head{Most: stderrBytes}
	cmd.Stderr, cmd.WaitDelay = &said, pipePatience
	// Its session is its own.
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	if _, err := cmd.StdinPipe(); err != nil { // Wait closes it
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the probing program: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = stdout.Close() })() // a descendant may have it, too
	line, _ := bufio.NewReader(io.LimitReader(stdout, firstBytes)).ReadString('\n')
	if line == "ready\n" {
		parts, err = writable(cmd.Process.Pid, image)
	}
	_ = cmd.Cancel() // of one that has ended, what it has started
	ended := cmd.Wait()
	if line != "ready\n" {
		return nil, fmt.Errorf("%s: %w: %s", image.Name(), errors.Join(errors.New("did not get ready"), ended), strings.TrimSpace(string(said.Kept)))
	}
	return parts, err
}

// writable reads what the process may write of the object, which must be the
// same file.
func writable(pid int, like objfile.Image) ([]data, error) {
	images, err := objfile.Images(pid)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(images, func(i objfile.Image) bool { return i.Inode == like.Inode && i.Device == like.Device })
	if at < 0 {
		return nil, fmt.Errorf("%s: %w", like.Path, ErrOtherFile)
	}
	file, err := images[at].Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	process, err := proc.Open(pid)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	var parts []data
	for _, segment := range file.Writable() {
		part := data{start: segment.Address, content: make([]byte, segment.Size)}
		if err := process.Read(images[at].Address(segment.Address), part.content); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
