// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"slices"
	"sync/atomic"
)

// watchBuckets is WATCH_BUCKETS of include/watch.h.
const watchBuckets = 4096

// watchBucket is watch_bucket() of include/watch.h.
func watchBucket(key uprobesWatchKey) uint32 {
	return (key.Process*2654435761 ^ key.Point*2246822519) >> 20 % watchBuckets
}

// list lets the programs find a watch. The caller holds mu.
func (t *watchTable) list(key uprobesWatchKey, number uint32) {
	bucket := watchBucket(key)
	t.inBucket[bucket] = append(t.inBucket[bucket], number)
	t.show(bucket)
}

// unlist is the opposite. The caller holds mu.
func (t *watchTable) unlist(key uprobesWatchKey, number uint32) {
	bucket := watchBucket(key)
	left := slices.DeleteFunc(t.inBucket[bucket], func(n uint32) bool { return n == number })
	t.inBucket[bucket] = left
	if len(left) == 0 {
		delete(t.inBucket, bucket)
	}
	t.show(bucket)
	// A program that has found it just now sees that it is nobody's.
	atomic.StoreUint32(&t.watches.Elements[number].Process, 0)
}

// show writes the first watch of a bucket to where the programs look; of others
// they ask the hash map.
func (t *watchTable) show(bucket uint32) {
	var first uint64
	if numbers := t.inBucket[bucket]; len(numbers) > 0 {
		first = uint64(numbers[0]) + 1
	}
	atomic.StoreUint64(&t.buckets.Elements[bucket], first)
}
