// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/internal/rundir"
)

// File is the name of the knowledge store in the state directory.
const File = "knowledge.db"

// Open opens what this user's earlier runs have learnt.
func Open(ctx context.Context) (*store.Store, error) {
	dir, err := rundir.Current().KnowledgeDir()
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, filepath.Join(dir, File))
}

// Lazy is the store of this user, opened when it is first of use: no program
// waits for a file, which may be on a server. What prevents that may pass, another
// process's lock for one: then it is opened the next time. The zero value is usable,
// by several goroutines.
type Lazy struct {
	mu    sync.Mutex
	store *store.Store // nil: not open yet
}

var _ analyzer.Knowledge = (*Lazy)(nil)

func (k *Lazy) open(ctx context.Context) (*store.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store != nil {
		return k.store, nil
	}
	opened, err := Open(ctx)
	if err != nil {
		return nil, err
	}
	k.store = opened
	return opened, nil
}

// Known returns what is known about an application.
func (k *Lazy) Known(ctx context.Context, application string) ([]store.Advice, error) {
	opened, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	return opened.Known(ctx, application)
}

// Record adds what a session has learnt.
func (k *Lazy) Record(ctx context.Context, trials []store.Trial) error {
	opened, err := k.open(ctx)
	if err != nil {
		return err
	}
	return opened.Record(ctx, trials)
}

// Close closes the store, if it was opened, once nobody uses it any more.
func (k *Lazy) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
