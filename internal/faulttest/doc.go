// Package faulttest has only tests: what the library does on bad days. Each test injects one fault for real (signals, limits,
// full pipes, flipped bits, workers that speak the protocol by hand, hosts that are killed). FAULTS.md beside the suite of
// childtest lists them all, by the ids that most tests are named after.
//
// The letters of an id say what the fault concerns: P the death of a worker, F frames and values, R the routing of replies,
// S start and restart, T time and cancellation, X shutdown, G goroutine children, O limits of the system, H the host, Z security, C a public bug
// report about a program of this kind. TestOriginal is a defect measured in the Python original, TestModel and TestChaos draw
// what they do at random.
package faulttest
