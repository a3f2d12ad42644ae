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

// RemoveIfKilled has a signal that ends this process remove a file, or a folder with what is in it,
// before. keep ends that, any number of times; once such a signal has come it does not return.
func RemoveIfKilled(path string) (keep func()) {
	killed, kept := make(chan os.Signal, 1), make(chan struct{})
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(killed, sig)
		}
	}
	go func() {
		select {
		case sig := <-killed:
			for tries := 0; os.RemoveAll(path) != nil && tries < removals; tries++ {
			}
			os.Exit(launch.DieBy(sig.(syscall.Signal)))
		case <-kept:
		}
	}()
	return sync.OnceFunc(func() {
		kept <- struct{}{}
		signal.Stop(killed)
	})
}
