// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/attune-hpc/attune/internal/launch"
)

// removals is how often a folder is removed in which a file may be made meanwhile.
const removals = 100

// Killing is the signals that end this process, which it catches.
type Killing struct{ signals chan os.Signal }

// CatchKilling catches the signals that end this process, for the moment until there is what they remove.
func CatchKilling() Killing {
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return Killing{signals: signals}
}

// Removes has such a signal, one that has come already too, remove a file, or a folder with what is in
// it, before this process ends. keep ends that, any number of times; once such a signal has come it does
// not return.
func (k Killing) Removes(path string) (keep func()) {
	kept := make(chan struct{})
	go func() {
		select {
		case sig := <-k.signals:
			for tries := 0; os.RemoveAll(path) != nil && tries < removals; tries++ {
			}
			os.Exit(launch.DieBy(sig.(syscall.Signal)))
		case <-kept:
		}
	}()
	return sync.OnceFunc(func() {
		kept <- struct{}{}
		signal.Stop(k.signals)
	})
}
