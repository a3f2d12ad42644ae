// SPDX-License-Identifier: Apache-2.0

package site

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/analyzer/service"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// pick says which of the site's sessions are meant.
type pick struct {
	user, node, job string
	since           cli.Span // 0: however long ago
	limit           uint     // the latest of them; 0: all
}

// add declares the flags.
func (k *pick) add(flags *pflag.FlagSet) {
	k.addWhose(flags)
	flags.StringVar(&k.job, "job", "", "only sessions of the batch system's job `ID`, as 1347 or 1347.0")
	flags.UintVar(&k.limit, "limit", 0, "only the latest `N` sessions")
}

// addWhose declares the flags that say whose sessions are meant, where and when.
func (k *pick) addWhose(flags *pflag.FlagSet) {
	flags.StringVar(&k.user, "user", "", "only sessions of `USER`, by name or id")
	flags.StringVar(&k.node, "node", "", "only sessions with processes on the node `NAME`")
	flags.Var(&k.since, "since", "only sessions that went on in the last `TIME`, as 90m, 48h or 30d")
}

// narrow leaves the sessions that are meant, in their order, and of registrations those
// that somebody has ordered: what was handed over of a job is there as its session.
func (k *pick) narrow(list *attunev1.ListSessionsResponse, now time.Time) {
	list.Sessions = slices.DeleteFunc(list.GetSessions(), func(s *attunev1.SessionRecord) bool { return !k.means(s, now) })
	if n := uint(len(list.GetSessions())); k.limit > 0 && n > k.limit {
		list.Sessions = list.GetSessions()[n-k.limit:]
	}
	list.Registrations = slices.DeleteFunc(list.GetRegistrations(), func(r *attunev1.Registration) bool {
		return r.GetExecutable() == registry.HandedOver
	})
}

// means says whether a session is meant.
func (k *pick) means(s *attunev1.SessionRecord, now time.Time) bool {
	user := s.GetUser()
	switch {
	case k.user != "" && k.user != user.GetName() && (user == nil || k.user != strconv.FormatUint(uint64(user.GetUid()), 10)),
		k.node != "" && !slices.Contains(s.GetHosts(), k.node),
		k.job != "" && !service.OfJob(s, k.job),
		k.since > 0 && now.Sub(endOf(s, now)) > time.Duration(k.since):
		return false
	}
	return true
}
