// SPDX-License-Identifier: Apache-2.0

// Package targets builds tiny C programs for tests to attach to, and runs
// them. A target prints "ready" on its first line when it has reached the
// place that the test is about, and ends when its standard input does.
//
// The folder programs has those that are hard to attach to, one file for each
// case; what they have in common is in target.h. They say themselves whether
// they are right, and end with a status of their own, [Status].
//
// Where each case is tested: "inject" stands for the tests of package
// controller/inject, which enter the process and leave it; "all" for TestHardCases
// of package controller, which also counts calls there by hook, GOT slot and entry
// patch, and makes and takes back a change by each way in: memory write, entry
// patch, GOT slots, system call, DMLib and a stopped thread. It compares the code
// afterwards. "outside" stands for TestHardOutside there, which makes the same
// changes while the case lasts: each is applied, or refused with its reason.
//
//	case                                program   tests
//	ends while it is attached to        plain     inject: TestEndWhileEntering; TestHardEnd
//	executes a program meanwhile        plain     inject: TestExecWhileEntering; outside
//	the same, with a hundred threads    becomes   inject: TestExecIntoAmbush
//	2,000 threads                       many      inject: TestHardPrograms; all, with 200
//	threads begin and end meanwhile     churn     inject: TestHardPrograms,
//	                                              TestAtTheSameTime; all
//	stopped by SIGSTOP                  plain     inject: TestStopWhileEntering,
//	                                              TestStoppedProcessStaysStopped; outside
//	another tracer                      plain     inject: TestOtherTracer
//	seccomp                             forbids   inject: TestSeccomp,
//	                                              TestSeccompOfSomeThreads (root),
//	                                              TestSeccompLater; outside
//	other pids, other mounts            churn     inject: TestNamespaces, TestNoProc (root)
//	deleted executable                  plain     inject: TestDeletedProgram; outside
//	library upgraded since the start    plain     inject: TestUpgradedLibrary (root)
//	another user                        churn     inject: TestOtherUser (root)
//	stacks of 4 KB                      small     inject: TestHardPrograms; all
//	stacks of 16 KB                     busy      inject: TestInjectWhateverThreadsDo
//	in a handler, with sigaltstack      handler   inject: TestHardPrograms; all
//	signals arrive all the time         alarms    inject: TestHardPrograms,
//	                                              TestSignalsDuringInjection; all
//	has faults all the time             faults    inject: TestHardPrograms,
//	                                              TestBetweenFaultAndHandler; all
//	in timed system calls               timed     inject: TestTimedCallsGoOn
//	in malloc, qsort, printf            busy      inject: TestInjectWhateverThreadsDo,
//	                                              TestExecute
//	in dlopen                           loads     inject: TestHardPrograms; all
//	libraries come and go               swaps     inject: TestObjectsThatSwap
//	vfork                               spawns    inject: TestHardPrograms, TestVforkChild,
//	                                              TestVforkParent; all
//	debug registers of its own          watches   inject: TestHardPrograms; all
//	                                    visits    inject: TestExecuteBesideOwnBreakpoints,
//	                                              TestExecuteAtRefuses
//	many rounds, nothing left           busy      inject: TestManyRounds;
//	                                              a thousand: make bench-inject
package targets
