// Package executor runs functions on a pool of worker processes that comes and goes with the work: what loky's reusable
// executor is to Python, on the children of package supervisor.
//
// A function gets a name with [Define], as a package variable, so that a worker, which is this same binary run again, has
// it too. [Func.Submit] runs it once and returns a future; [Map] runs it for each value of a sequence and yields the
// results. [Reusable] gives everybody who asks for the same settings the same executor.
//
//	var Hash = executor.Define("example.com/app.Hash", func(ctx context.Context, file string) (string, error) { … })
//
//	func main() {
//		supervisor.Init() // first line: in a worker process it serves and never returns
//		ctx := context.Background()
//		lease, err := executor.Reusable(ctx, executor.Options{})
//		if err != nil { … }
//		defer lease.Release()
//		for item := range executor.Map(ctx, lease.Executor, Hash, slices.Values(files)) { … }
//	}
//
// # Tasks
//
// A task is one call of a function. Each accepted task gets exactly one verdict: its value, or a [*TaskError] that wraps
// why there is none. It is executed at most once, unless its function was declared idempotent by [Retries]. The ctx of
// Submit or Map is the tasks' own: its end and its deadline reach the running function. A task that has not begun when
// it is cancelled never runs. One that has gets its context ended, and its future ends at once; its worker takes the
// next task when it has returned, or is replaced when [KillAfter] is over. For a limit of each task's own in a Map let the
// function derive a context with a timeout, and give it KillAfter in case it hangs.
//
// A panic of a function is its task's error, a [*supervisor.PanicError], and its worker goes on, unless
// supervisor.Restart in [Options].Workers says that it ends. One on a goroutine that the function has started ends a worker
// process as a crash; with workers that are goroutines it ends the program.
//
// Tasks begin in the order in which they were accepted. Short tasks of one function travel together: a worker gets as
// many as it does in about a millisecond. Each of them can still be cancelled, or moved to another worker, until it
// begins, and all that have not begun are moved as soon as one of them takes longer than that.
//
// # Crashes
//
// A worker that dies takes with it exactly the task that it was executing, whose [*TaskError] says how: the exit status
// and the end of the worker's output are those of the [*supervisor.ExitError] that it wraps. What that worker had
// finished is kept, and what had not begun goes to others. A worker is replaced when there is work for it. When workers
// die or fail to start again and again, and no task succeeds in between, the executor breaks: what waits gets
// [ErrBroken] with the last cause, and Reusable makes a new one. A task with retries that was running at
// [Options].PoisonAfter crashes gets [ErrPoison].
//
// # Workers
//
// They are started on demand, up to [Options].MaxWorkers, and end after [Options].IdleTimeout without work. Each is a
// child of the executor's own supervisor, so that all that is said there of orphans, grandchildren, output and
// environment holds; [Options].Workers takes the options of such a child. A program may end without a Shutdown: its workers
// notice that and end by themselves. With supervisor.WithType(supervisor.Goroutine)
// the workers are goroutines: values pass by reference then, and nothing can be killed, only abandoned.
//
// A task may itself use an executor; processes nest 10 deep, or as the environment variable SUPERVISOR_MAX_DEPTH says,
// and then get [ErrTooDeep]. A task that waits for another one in its own executor holds a worker meanwhile, so that
// such tasks can wait for each other for ever.
package executor
