// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// OutlivePipes has a write to a pipe whose reader has gone fail, where it would end this process:
// what the process has changed would stay. Nobody reads the signal, for sockets raise it too.
func OutlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// UntilGone is a writer that calls gone when its reader has gone.
func UntilGone(to io.Writer, gone func()) io.Writer { return untilGone{to, gone} }

type untilGone struct {
	io.Writer

	gone func()
}

func (w untilGone) Write(text []byte) (int, error) {
	n, err := w.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		w.gone()
	}
	return n, err
}
