// SPDX-License-Identifier: Apache-2.0

package track

// youngScans is for how many scans a process that does not belong is looked at again:
// it may yet exec into the job.
const youngScans = 10

// outsiders are the processes that do not belong to the job.
type outsiders struct {
	feed                *feed
	ownDevice, ownInode uint64
	// excluded processes are Attune's own; so are their children.
	excluded map[int]bool
	// seen counts for how many scans a process that is none of ours is there.
	seen map[int]int
}

func newOutsiders(feed *feed, ownDevice, ownInode uint64) *outsiders {
	return &outsiders{
		feed: feed, ownDevice: ownDevice, ownInode: ownInode, excluded: make(map[int]bool), seen: make(map[int]int),
	}
}

// isOwn says whether an executable is Attune's.
func (o *outsiders) isOwn(device, inode uint64) bool {
	return device == o.ownDevice && inode == o.ownInode
}

// exclude keeps a process and its children out of the job.
func (o *outsiders) exclude(pid int) {
	o.excluded[pid] = true
	o.feed.unfollow(pid)
}

// isKnown says whether a process has been there for so long that it is not looked at
// any more.
func (o *outsiders) isKnown(pid int) bool { return o.seen[pid] > youngScans }

// countScan counts how long foreign processes have been there, and forgets
// those that are gone.
func (o *outsiders) countScan(there map[int]bool, isMember func(pid int) bool) {
	for pid := range there {
		if !isMember(pid) {
			o.seen[pid]++
		}
	}
	for pid := range o.seen {
		if !there[pid] || isMember(pid) {
			delete(o.seen, pid)
		}
	}
	for pid := range o.excluded {
		if !there[pid] {
			delete(o.excluded, pid)
		}
	}
}
