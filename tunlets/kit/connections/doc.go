// SPDX-License-Identifier: Apache-2.0

// Package connections is what the tunlets about TCP connections have in common:
// a [Problem] says how a connection that suffers looks and what cures it, and
// [New] makes a tunlet of it.
//
// Nothing is known of connections before the signals of a process suggest that
// it may wait for some. Then its sockets are read from outside, 20 times a
// second, for a few seconds at most: each connection is observed for a second
// ([Flow]) and judged. If none suffers, the sockets are given back, and the
// process is left alone for 2, 4, … 64 s. If some do, a change of those is
// proposed, judged by the bytes that get through on all connections of the
// process, in both directions: that is what the program exchanges with others,
// whatever the size of its segments. Connections that it opens later are looked
// at in the same way.
//
// flow.go has what is known of one connection; watch.go follows one process;
// tunlet.go has what a problem is, and connects them to the Dynamic Tunlet API. No
// locks: the SDK makes one call at a time.
package connections
