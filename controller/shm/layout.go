// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// What both sides agree on that others need to know; the rest is in package abi.
const (
	// HookCount is the number of local point indices reserved for DMLib's own
	// hooks; they start at 0.
	HookCount = abi.HookCount
	// StubCount is the number of stubs; their local point indices start at
	// HookCount.
	StubCount = abi.StubCount
	// PointCount is the number of local point indices of one process.
	PointCount = abi.PointCount
	// HistogramBuckets is the number of log2 buckets of an aggregate.
	HistogramBuckets = aggregate.Buckets
	// MailboxSize is the number of commands that can be pending at once.
	MailboxSize = abi.MailboxCount
)

const (
	ctlMeasuring    = abi.CtlAggregate | abi.CtlEvent | abi.CtlDuration | abi.CtlProgram
	commandArgCount = 8
)
