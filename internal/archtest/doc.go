// Package archtest reads the source of this module and reports where it leaves the rules that no compiler holds: who may
// import whom, what a public signature may show, what must be documented, how large things may grow, and who may start
// goroutines, programs or write a log line, and what is left to the program.
//
// Each rule is a function from source to findings and knows nothing of this project; the tables with this project's layers,
// limits and exceptions are in the tests. An exception stands in a table with its reason, and one that is no longer needed
// is itself a finding, so the tables cannot rot.
//
// Rules that only need the shape of the code work on a [Tree], which holds every file whatever system it is built for.
// Rules that need types work on a [Program], which holds what this system builds.
package archtest
