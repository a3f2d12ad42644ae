// SPDX-License-Identifier: Apache-2.0

package silentfs

import (
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that may fail.
type failing struct {
	testing.TB
	errors int
}

func (f *failing) Error(...any) { f.errors++ }

// A look that fails its test does not go on when the test has ended.
func TestUnaskedAwaitsTheLook(t *testing.T) {
	for name, asks := range map[string]bool{"the server is asked": true, "nothing comes": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs, test, ended := &FS{Asked: make(chan struct{}, 1)}, &failing{TB: t}, make(chan struct{})
				fs.Unasked(test, func() {
					defer close(ended)
					if asks {
						fs.Asked <- struct{}{}
					}
					for fs.leave(0) {
						time.Sleep(time.Second)
					}
				})
				select {
				case <-ended:
				default:
					t.Error("the look goes on")
				}
				if test.errors != 1 {
					t.Errorf("%d errors, want one", test.errors)
				}
			})
		})
	}
}
