// Package task runs one goroutine that has an owner.
//
// Every goroutine of the library is started here, so that each of them can be told to stop and waited for.
package task

import "context"

// A Task is one running goroutine. The zero value is not usable: [Go] and [GoContext] are the ways to make one.
// Its methods may be called concurrently.
type Task struct {
	cancel context.CancelFunc
	done   chan struct{} // closed by the goroutine itself, as the last thing it does
}

// Go runs f on a goroutine of its own and returns its handle. The context of f ends when [Task.Stop] is called and
// when f has returned. A panic in f ends the program, as it does on any goroutine; recovering is up to f.
func Go(f func(ctx context.Context)) *Task {
	return GoContext(context.Background(), f)
}

// GoContext is like [Go], but the context of f is derived from ctx: it carries its values and ends with it.
func GoContext(ctx context.Context, f func(ctx context.Context)) *Task {
	ctx, cancel := context.WithCancel(ctx)
	t := &Task{cancel: cancel, done: make(chan struct{})}
	go func() {
		// Deferred, so that an f that leaves by runtime.Goexit is done as well.
		defer close(t.done)
		defer cancel()
		f(ctx)
	}()
	return t
}

// Stop asks the goroutine to end by cancelling its context. It does not wait, and may be called any number of times.
func (t *Task) Stop() { t.cancel() }

// Done returns a channel that is closed once the function has returned.
func (t *Task) Done() <-chan struct{} { return t.done }

// Wait blocks until the function has returned. It does not ask it to: call [Task.Stop] for that first. Called from
// within the task it never returns.
func (t *Task) Wait() { <-t.done }
