// SPDX-License-Identifier: Apache-2.0

// Package footprint measures what lies in directories and below: how many files, and
// how much of their disks they take.
//
// A look at a directory may never end where a server of NFS or FUSE does not answer: package
// readers has helpers for that.
package footprint
