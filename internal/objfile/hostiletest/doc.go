// SPDX-License-Identifier: Apache-2.0

// Package hostiletest has tests of package objfile on files that an attacker would write:
// what it allocates for them, and that it ends. It is apart since the race detector has
// nothing to find in them, takes ten times as long, and changes what is allocated.
package hostiletest
