// Package testkit is what the tests of the other packages share. It imports nothing of what they test, so that tests
// inside a package can use it as well.
//
// # The frame
//
// [Main] is the body of a TestMain: workers and helper processes, which are the test binary run again, go their own way
// there, a run that hangs ends with a report, and what is left after the last test is an error. [NoLeaks] says the same
// of a single test.
//
// # Waiting
//
// Tests wait for events: [Receive] and [Closed] for channels, a [Recorder] for what a callback is told, [Until] for a
// state that nothing announces. [Within] bounds a step that must not hang.
//
// # Counting
//
// A [Ledger] has one line per execution, also of processes that were killed right after it. A [Law] counts verdicts and
// holds them against the ledger.
package testkit

import "time"

// Limit is how long a test waits for what comes at once on an idle machine.
const Limit = 20 * time.Second * Slowdown
