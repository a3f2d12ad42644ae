// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/metrics"
)

// refusal is why a process is left alone.
type refusal struct {
	error

	reason string // as metrics have it
}

// errClosed refuses what comes at the end.
var errClosed = &refusal{errors.New("attuned is ending"), metrics.RefusedStopping}

// maxSessionsOfUser bounds what one user can make this node do: a job id costs
// them nothing, and a session some hundred kilobytes, and objects in the kernel.
const maxSessionsOfUser = 64

// errTooMany refuses one session more.
var errTooMany = &refusal{fmt.Errorf("the user has %d sessions on this node, which is the most", maxSessionsOfUser), metrics.RefusedTooMany}

// maxWaitingOfUser bounds the processes of one user that wait to be followed, each by a
// descriptor of this process': an eighth of those that attuned.service gives it.
const maxWaitingOfUser = 8192

// errTooManyWait refuses one process more.
var errTooManyWait = &refusal{fmt.Errorf("%d processes of the user wait to be followed, which is the most", maxWaitingOfUser), metrics.RefusedWaiting}

const (
	// lostTime is how long nothing of a session is taken that was given up.
	lostTime = 24 * time.Hour
	// maxLost is how many sessions of a user may be given up until the node starts
	// again: each costs a process, and the undoing of what it had changed.
	maxLost = 64
)

// errLost refuses a user whose sessions do not last.
var errLost = &refusal{fmt.Errorf("%d sessions of the user were given up on this node, which is the most", maxLost), metrics.RefusedGivenUp}
