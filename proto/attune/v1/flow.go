// SPDX-License-Identifier: Apache-2.0

package attunev1

// FlowWindow is how many bytes may be under way on a connection, and in one of its
// streams, before the reader has taken any. It is given to gRPC at both ends, which
// else measures the connection to find a window: a ping, its answer and an update
// for each message that comes alone, so that every message wakes both ends twice.
const FlowWindow = 4 << 20

// MaxMessage bounds a message of the channels between controllers and Analyzer, bytes.
const MaxMessage = 16 << 20

// MaxAnswer bounds what people take as an answer, bytes: a list or a report comes as one
// message, and gRPC's own bound of 4 MiB is a report of some 3,000 processes.
const MaxAnswer = 64 << 20

// Protocol numbers what the channels between controllers and Analyzer carry. A change
// after which one end would not understand the other raises the number. 2: wants are
// whole.
const Protocol = 2
