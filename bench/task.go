package bench

import "github.com/workerlink/supervisor"

// A TaskWay is one way to run tasks on workers of which each takes what comes.
type TaskWay struct {
	Name string

	// Open makes a pool of up to so many workers, which lives until its Close.
	Open func(workers int) (*TaskPool, error)
}

// A TaskPool is the workers of one [TaskWay]. A task is empty: its value is the
// number that it was given. One goroutine at a time uses a pool.
type TaskPool struct {
	// Submit begins a task. What it returns waits for the task's value.
	Submit func(n int) (wait func() (int, error), err error)

	// Map runs tasks as long as more says so, and returns how many values came.
	Map func(more func() bool) (int, error)

	// Resize changes how many workers there may be; nil where that cannot be done.
	Resize func(workers int) error

	// Crash runs a task that ends its worker, and returns when that is known; nil
	// where it would end this process.
	Crash func() error

	// Close ends the workers and waits for them.
	Close func() error
}

// TaskWays returns all ways to run tasks. The first is the plain one.
func TaskWays() []TaskWay {
	return []TaskWay{
		{Name: "goroutines and a channel, no library", Open: openGoroutines},
		{Name: "executor, goroutine", Open: func(n int) (*TaskPool, error) { return openExecutor(supervisor.Goroutine, n) }},
		{Name: "executor, process", Open: func(n int) (*TaskPool, error) { return openExecutor(supervisor.Process, n) }},
	}
}
