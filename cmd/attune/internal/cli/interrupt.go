// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"
)

// echo is how long after a signal another one may be the same: timeout(1) and some
// batch systems send it to a process, and then to the group that it is in.
const echo = 500 * time.Millisecond

// EndAtNext lets the next signal end this process at once, but not one that follows
// on the heels of the first. stop is that of [signal.NotifyContext].
func EndAtNext(stop context.CancelFunc) { time.AfterFunc(echo, stop) }
