// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/internal/rundir"
)

// knowledgeFile is the name of the knowledge store in the state directory.
const knowledgeFile = "knowledge.db"

// openKnowledge opens what this user's earlier runs have learnt.
func openKnowledge(ctx context.Context) (*store.Store, error) {
	dir, err := rundir.Current().KnowledgeDir()
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, filepath.Join(dir, knowledgeFile))
}

// knowledge is the store of this user, opened when it is first of use: no program
// waits for a file, which may be on a server. What prevents that may pass, another
// process's lock for one: then it is opened the next time. The zero value is usable,
// by several goroutines.
type knowledge struct {
	mu    sync.Mutex
	store *store.Store // nil: not open yet
}

var _ analyzer.Knowledge = (*knowledge)(nil)

func (k *knowledge) open(ctx context.Context) (*store.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store != nil {
		return k.store, nil
	}
	opened, err := openKnowledge(ctx)
	if err != nil {
		return nil, err
	}
	k.store = opened
	return opened, nil
}

// Known returns what is known about an application.
func (k *knowledge) Known(ctx context.Context, application string) ([]store.Advice, error) {
	opened, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	return opened.Known(ctx, application)
}

// Record adds what a session has learnt.
func (k *knowledge) Record(ctx context.Context, trials []store.Trial) error {
	opened, err := k.open(ctx)
	if err != nil {
		return err
	}
	return opened.Record(ctx, trials)
}

// close closes the store, if it was opened, once nobody uses it any more.
func (k *knowledge) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}
