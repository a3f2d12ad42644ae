// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"time"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/metrics"
)

// loadPolicy reads the site's policy, and says whether it can be used. In place of one
// that cannot, the last one that could stays in force; without any, everything is denied.
func (a *service) loadPolicy() bool {
	p, err := policy.Load(a.settings.policy)
	if err != nil {
		p = a.policy.Load().Kept(err)
		a.log.Error("the policy cannot be used", "so", p.Trouble())
	}
	before := a.policy.Swap(p)
	if a.since.Load() == 0 || (before.Trouble() == "") != (p.Trouble() == "") {
		a.since.Store(time.Now().Unix())
	}
	return err == nil
}

// readPolicy gives the metrics of the policy.
func (a *service) readPolicy(put metrics.Put) {
	put(metrics.PolicyOK, metrics.Truth(a.policy.Load().Trouble() == ""))
	put(metrics.PolicySince, float64(a.since.Load()))
}

// reloadLoop takes what can change while attuned runs, at SIGHUP: the policy and
// the log level. Certificates are read when they change.
func (a *service) reloadLoop(ctx context.Context, done func()) {
	again := time.NewTicker(policyRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			if a.retryPolicy() {
				done()
			}
		case <-a.Hangup():
			a.Reloading(func() {
				a.reload()
				done()
			})
		}
	}
}

// policyRetry is how often a policy is read again that could not be used.
const policyRetry = time.Minute

// retryPolicy takes a policy that could not be used and can be by now: the directory service
// that knows its users may answer.
func (a *service) retryPolicy() bool {
	if a.policy.Load().Trouble() == "" {
		return false
	}
	if _, err := policy.Load(a.settings.policy); err != nil || !a.loadPolicy() {
		return false // it has been said
	}
	a.log.Info("the policy can be used by now")
	return true
}

// reload reads the policy whatever becomes of the other settings: what the site denies by now
// must not wait until a mistake beside it is mended.
func (a *service) reload() {
	usable := a.loadPolicy()
	s, err := load(a.args, io.Discard)
	if err != nil {
		a.log.Error("the configuration beside the policy stays as it was", "error", err)
		return
	}
	a.level.Set(s.level)
	before := a.settings
	before.level = s.level
	if !before.equal(s) {
		a.log.Warn("what else has changed in the configuration needs a restart")
	}
	if usable {
		a.log.Info("reloaded: policy and log level", "level", s.level)
	}
}
