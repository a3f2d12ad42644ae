// SPDX-License-Identifier: Apache-2.0

package pty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is the controlling side of a pseudo-terminal with a program on the
// other.
type Terminal struct {
	master *os.File
	slave  string
	seen   bytes.Buffer
}

// Open creates a pseudo-terminal.
func Open() (*Terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open pseudo-terminal: %w", err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return nil, fmt.Errorf("unlock pseudo-terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("number of pseudo-terminal: %w", err)
	}
	return &Terminal{master: master, slave: "/dev/pts/" + strconv.Itoa(n)}, nil
}

// Start starts cmd as the leader of a session that owns the terminal, with its
// standard streams there.
func (t *Terminal) Start(cmd *exec.Cmd) error {
	tty, err := os.OpenFile(t.slave, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open terminal: %w", err)
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	return cmd.Start()
}

// Resize sets the terminal's size.
func (t *Terminal) Resize(rows, columns uint16) error {
	conn, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		result = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
	return errors.Join(err, result)
}

// Type sends text as if typed.
func (t *Terminal) Type(text string) error {
	_, err := t.master.WriteString(text)
	return err
}

// Expect reads until text has been shown since the last match, and returns
// what was shown up to its end. The error after timeout quotes all that came.
func (t *Terminal) Expect(text string, timeout time.Duration) (string, error) {
	if err := t.master.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	buf := make([]byte, 4096)
	for {
		if i := bytes.Index(t.seen.Bytes(), []byte(text)); i >= 0 {
			return string(t.seen.Next(i + len(text))), nil
		}
		n, err := t.master.Read(buf)
		t.seen.Write(buf[:n])
		if err != nil && n == 0 {
			return "", fmt.Errorf("wait for %q: %w; shown: %q", text, err, t.seen.String())
		}
	}
}

// Close hangs up.
func (t *Terminal) Close() error { return t.master.Close() }
