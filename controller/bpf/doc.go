// SPDX-License-Identifier: Apache-2.0

// Package bpf is what the Application Controller's BPF programs have in common:
// whether this user and this kernel can have them, where members of the kernel's
// structures lie, memory that programs and the controller share. The programs
// themselves have Go faces of their own:
//
//   - procevent follows the processes of jobs through fork, exec and exit.
//   - uprobe counts and records the calls of functions in any mapped file.
//   - trap has the threads of one process come to a place.
//
// The C lies in src and include; the objects made from it by go generate are
// committed beside their faces, so that building needs no clang. Process ids are
// those of the controller's own pid namespace throughout.
//
// What the kernel or the user's privileges do not allow is reported as an
// *UnsupportedError with reason and remedy; everything else goes on without.
package bpf
