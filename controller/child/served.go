// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller"
)

// served is a session's process with what attuned has for it.
type served struct {
	config  controller.Config
	log     *slog.Logger
	roster  *roster
	relayed *atomic.Int64   // connections of all sessions
	process *process        // set by Start
	ctx     context.Context // of what serves the process
	cancel  context.CancelCauseFunc
	work    sync.WaitGroup // goroutines that end with ctx
}
