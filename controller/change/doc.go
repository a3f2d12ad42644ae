// SPDX-License-Identifier: Apache-2.0

// Package change carries out what the Analyzer asks for, and stands in for it while
// it is away: tuning actions stay in force for as long as a lease, measure points
// for as long as one. An Analyzer that comes back names the changes that are to stay
// and says all that it wants measured; points that are as before are not touched.
//
// [Changes] and [Wanted] may be used from any goroutine. The mutexes in here are
// leaves, but for that under which one want takes the place of another.
package change
