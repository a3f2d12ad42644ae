// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the closed loop from outside: the commands in bin/ on real
// programs with and without a problem. Its tests carry the build tag e2e and
// need `make build`; `make test-e2e` does both. They need no privileges; as
// root they also go through the kernel's side. The full suite alone runs those
// with the tag full as well: tunlets whose ways into a program another test has.
//
// A workload runs until its test has seen in the timeline what it waits for, and
// ends it. What a machine that others use cannot show, as how much faster a
// program becomes, bench/catalogue measures.
//
// Those with the tag vm run in a virtual machine (make test-vm): they change what
// belongs to a whole machine. One closed loop has both tags. Those with the tag
// site run on a cluster in namespaces (make test-site).
package e2e
