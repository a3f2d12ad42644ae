// SPDX-License-Identifier: Apache-2.0

package ring

import "github.com/attune-hpc/attune/controller/measure"

// What both sides must agree on; see dmlib_abi.h for the meaning. The order
// here is the order there.
const (
	abiMagic   = 0x0031424c4d445441
	abiVersion = 6
	cacheLine  = 64

	// HookCount is the number of local point indices reserved for DMLib's own
	// hooks; they start at 0.
	HookCount = 64
	// StubCount is the number of stubs; their local point indices start at
	// HookCount.
	StubCount = 192
	// PointCount is the number of local point indices of one process.
	PointCount = HookCount + StubCount

	// sharerCount is the number of the last of the hooks' points, which belong to
	// no hook and may take the hits of one as well. They start at sharerFirst.
	sharerCount = 16
	sharerFirst = HookCount - sharerCount

	// HistogramBuckets is the number of log2 buckets of an aggregate.
	HistogramBuckets = 64

	// continuationPoint is the point of a continuation in the rings.
	continuationPoint = 0xffff

	// tableBuckets is the number of buckets of a table.
	tableBuckets = 2 * measure.MaxKeys

	// IslandCall is the length of the call at the beginning of an island,
	// IslandNumber where its number stands.
	IslandCall   = 6
	IslandNumber = 32

	// MailboxSize is the number of commands that can be pending at once.
	MailboxSize = 16
)

// Control word bits.
const (
	ctlAggregate = 1 << 0
	ctlEvent     = 1 << 1
	ctlDuration  = 1 << 2
	ctlMailbox   = 1 << 3
	ctlRegister  = 1 << 4
	ctlUntimed   = 1 << 5

	ctlProgram = 1 << 7
	ctlShared  = 1 << 8
	ctlTimed   = 1 << 9

	ctlMeasuring = ctlAggregate | ctlEvent | ctlDuration | ctlUntimed | ctlProgram
)

// Thread slot states.
const (
	slotFree   = 0
	slotUsed   = 1
	slotClosed = 2
)

// States of a forked child that asks.
const (
	childNone     = 0
	childAsks     = 1
	childAttended = 2
	childWaits    = 3
	childMay      = 4
	childMayNot   = 5
)

// Mailbox command states.
const (
	cmdEmpty   = 0
	cmdPosted  = 1
	cmdClaimed = 2
	cmdDone    = 3
)

// struct attune_header.
const (
	headerMagic         = 0
	headerVersion       = 8
	headerHeaderSize    = 12
	headerTotalSize     = 16
	headerControlOffset = 24
	headerMailboxOffset = 32
	headerSlotOffset    = 40
	headerRingOffset    = 48
	headerPointCount    = 56
	headerSlotCount     = 60
	headerRingCount     = 64
	headerRingRecords   = 68
	headerEpoch         = 72
	headerDetached      = 76

	headerControllerStart     = 80
	headerControllerNamespace = 88
	headerControllerPID       = 96
	headerProgramOffset       = 104
	headerTableOffset         = 112
	headerProgramCount        = 120
	headerTableCount          = 124

	headerPID         = 128
	headerState       = 132
	headerDMLibBase   = 136
	headerStubEntry   = 144
	headerStubSize    = 152
	headerStubCount   = 156
	headerStubTarget  = 160
	headerPatchEntry  = 168
	headerStubUnbound = 176
	headerPatchExit   = 184
	headerLostNoSlot  = 192
	headerForkCount   = 200
	headerRingNext    = 208
	headerSlotsUsed   = 212
	headerAttendEntry = 216
	headerChild       = 224
	headerCommonUsed  = 232
	headerSize        = 256
)

// struct attune_point_control.
const (
	controlWord       = 0
	controlSampleMask = 4
	controlMinValue   = 8
	controlMaxValue   = 16
	controlParameter  = 24 // written together with the program
	controlProgram    = 26
	controlSize       = 32
)

// struct attune_aggregate.
const (
	aggregateCount     = 0
	aggregateSum       = 8
	aggregateMin       = 16
	aggregateMax       = 24
	aggregateEpoch     = 32
	aggregateCalls     = 36 // DMLib's own, for sampling
	aggregateHistogram = 40
	aggregateSize      = 320
)

// struct attune_slot.
const (
	slotState      = 0
	slotTID        = 4
	slotRing       = 8
	slotOpen       = 12 // DMLib's own
	slotLost       = 16
	slotHead       = 64
	slotTail       = 128
	slotAggregates = 192
	slotCalls      = slotAggregates + PointCount*aggregateSize // DMLib's own
	slotSize       = slotCalls + openCalls*openCallSize
)

// struct attune_open_call, which is DMLib's own, and how many a thread can have.
const (
	openCallStack = 0
	openCallBegun = 8
	openCallValue = 16
	openCallExtra = 24
	openCallPoint = 32
	openCallSize  = 64

	openCalls = 64
)

// struct attune_program_slot.
const (
	programSlotProgram    = 0
	programSlotUnreadable = measure.ProgramSize
	programSlotSize       = programSlotUnreadable + cacheLine
)

// struct attune_keyed.
const (
	keyedCount     = 0
	keyedSum       = 8
	keyedLeast     = 16
	keyedGreatest  = 32
	keyedHistogram = 64
	keyedSize      = 320
)

// struct attune_table.
const (
	tableKeys   = 0
	tableZero   = 4
	tableKey    = 64
	tableRest   = tableKey + 8*tableBuckets
	tableOfZero = tableRest + keyedSize
	tableBucket = tableOfZero + keyedSize
	tableSize   = tableBucket + tableBuckets*keyedSize
)

// struct attune_record.
const (
	recordTime   = 0
	recordPoint  = 8
	recordFlags  = 10
	recordThread = 12
	recordValue  = 16
	recordExtra  = 24
)

// struct attune_continuation, where it is not as a record's.
const (
	continuationFirst  = recordTime
	continuationKinds  = recordThread
	continuationSecond = recordValue
	continuationThird  = recordExtra
)

// struct attune_command.
const (
	commandState     = 0
	commandOp        = 4
	commandAt        = 8
	commandThread    = 12
	commandID        = 16
	commandArgs      = 24
	commandResult    = 88
	commandError     = 96
	commandDoneBy    = 100
	commandDoneAt    = 104
	commandDonePoint = 112
	commandPoint     = 120
	commandSize      = 128
	commandArgCount  = 8
)
