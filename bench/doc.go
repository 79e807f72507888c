// Package bench measures what one call costs, beside the plain ways of doing
// the same without this library.
//
// Every [Way] does one thing, adding a number on a worker, which is a goroutine
// or a process: this binary, run again. Every [Load] is a closed loop: so many
// callers, each with one call in flight, over so many workers. [Measure] runs
// all ways under all loads in turns, several times over, because machines drift;
// its medians and ratios compare what ran side by side.
//
// A [TaskWay] runs empty tasks on workers of which each takes what comes, such
// as those of package executor, beside plain goroutines. [MeasureTasks] runs
// every [Trial] of all of them in turns, too. What Python reaches is quoted below
// its table, with how that was measured.
//
// The command in cmd/table prints the result. The benchmarks of the package are
// the same ways under the same loads, one at a time, for benchstat.
//
// On a machine with several cores the time of a single call is that of waking a
// sleeping core, and it is bimodal. What the code itself costs shows on one:
//
//	taskset -c 0 go run ./cmd/table
package bench
