// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"log/slog"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// uprobeKey names what the kernel sums up apart.
type uprobeKey struct {
	handle uint64
	point  uint16
	key    hits.Key
}

// uprobed takes what the kernel counted. Whoever uses it holds the mutex of
// aggregates.
type uprobed struct {
	members *member.Set
	kernel  *kernel
	placer  func() *probe.Placer
	log     *slog.Logger
	last    map[uprobeKey]uprobe.Aggregate // readings, for differences
}

// closed takes what the kernel counted in the interval that ends now.
func (u *uprobed) closed() []*attunev1.Aggregate {
	uprobes := u.kernel.loaded()
	if uprobes == nil {
		return nil
	}
	if err := uprobes.NextInterval(); err != nil {
		u.log.Warn("uprobe interval", "error", err)
	}
	var out []*attunev1.Aggregate
	read := make(map[uprobeKey]uprobe.Aggregate, len(u.last))
	u.placer().Uprobed(func(handle uint64, pid int, point uint16) {
		if u.members.Get(handle) == nil { // finish delivers the rest, or has done so
			u.keep(read, handle, point)
			return
		}
		eachAggregate(uprobes, pid, uprobeKey{handle: handle, point: point}, uprobe.Closed, func(key uprobeKey, now uprobe.Aggregate) {
			out = appendDifference(out, key, u.last[key], now)
			read[key] = now
		})
	})
	u.last = read
	return out
}

// keep copies the last readings of a point in a process.
func (u *uprobed) keep(read map[uprobeKey]uprobe.Aggregate, handle uint64, point uint16) {
	for key, before := range u.last {
		if key.handle == handle && key.point == point {
			read[key] = before
		}
	}
}

// rest takes what the kernel counted since the last interval of a
// process at the points that of accepts, which are about to be taken out.
func (u *uprobed) rest(process uint64, of func(point uint16) bool) []*attunev1.Aggregate {
	var out []*attunev1.Aggregate
	uprobes := u.kernel.loaded()
	if uprobes == nil {
		return nil
	}
	u.placer().Uprobed(func(handle uint64, pid int, point uint16) {
		if handle != process || !of(point) {
			return
		}
		eachAggregate(uprobes, pid, uprobeKey{handle: handle, point: point}, uprobe.Running, func(key uprobeKey, now uprobe.Aggregate) {
			out = appendDifference(out, key, u.last[key], now)
			u.last[key] = now // it may be asked for once more, at the process' end
		})
	})
	return out
}

// eachAggregate hands over what a point of a process has without a key, and
// then with each key.
func eachAggregate(uprobes *uprobe.Uprobes, pid int, key uprobeKey, of uprobe.Interval, visit func(uprobeKey, uprobe.Aggregate)) {
	var now uprobe.Aggregate
	if !uprobes.ReadAggregate(pid, key.point, of, &now) {
		return
	}
	visit(key, now)
	uprobes.ReadKeys(pid, key.point, of, func(one hits.Key, now *uprobe.Aggregate) {
		key.key = one
		visit(key, *now)
	})
}

// appendDifference adds what is new in a reading. A key that was not hit is
// left out.
func appendDifference(out []*attunev1.Aggregate, key uprobeKey, before, now uprobe.Aggregate) []*attunev1.Aggregate {
	if a := difference(key, before, now); !key.key.Has || a.GetCount() > 0 {
		out = append(out, a)
	}
	return out
}

// difference is what was counted between two readings. Of a process that is watched anew
// the second one is all there is.
func difference(key uprobeKey, before, now uprobe.Aggregate) *attunev1.Aggregate {
	if now.Watch != before.Watch {
		before = uprobe.Aggregate{}
	}
	counts := now.Since(&before.Counts)
	return counts.Values(now.Unreadable-before.Unreadable).Aggregate(uint32(key.point), key.handle, key.key)
}
