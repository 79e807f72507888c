// Package supervisor runs workers, goroutines or operating-system processes,
// behind one call API, and keeps them running.
//
// A [Supervisor] owns children. Each child has an object, made by a named
// factory ([Define], [DefineWith]) in the host for a [Goroutine] child and in a
// worker process for a [Process] child, which is this same binary run again.
// Requests name a child, one of the object's exported methods and arguments.
// The kind of a child is one word; nothing else in a program changes with it.
//
// # Init
//
// A program with process children calls [Init] as the first line of main, and
// in TestMain of its tests: in a worker it serves and never returns. Whatever a
// worker needs, such as factories, [RegisterType] and [RegisterError], belongs
// into package variables or init functions, which run before.
//
// # Contexts
//
// Three rules say what a ctx is. That of [Supervisor.StartLink] is the
// children's life: when it ends, they stop. That of [Supervisor.Send] is the
// hand-over: when it has returned, the request lives on. That of
// [Supervisor.Do], [Call], [Go] and [Broadcast] is the request's own: its cancel
// and deadline reach the handler.
//
// # Verdicts
//
// Each accepted request ends exactly once: with a value, or with a [*CallError]
// that wraps the reason: an error of the handler ([*RemoteError]), a panic
// ([*PanicError]), the death of its worker ([*ExitError]), [ErrTimeout],
// [ErrCanceled], [ErrRestarted] or [ErrClosed]. It is executed at most once; only
// CallError.Unexecuted says that it surely was not. A reply that comes after the
// verdict is dropped and counted.
//
// # Objects
//
// Callable are the declared exported methods of the factory's type, or exactly
// the methods of an interface type. A method takes an optional leading
// context.Context and returns nothing, R, error or (R, error). Handlers of one
// child run one at a time in the order of the sends unless [WithConcurrency]
// says otherwise. Optional hooks are not callable: Handle(ctx, method, args)
// (any, error) dispatches by itself, Serve(ctx) error is a loop of the object's own
// whose return ends the life, Health(ctx) error says whether it is well, Close()
// error runs at every orderly end, Snapshot() any shows something in
// [Supervisor.Snapshot].
//
// A panic in a handler is an error reply and the object is kept, unless
// Restart.OnPanic says otherwise. A panic on a
// goroutine that a handler started ends its process: a worker's for a process
// child, the host itself for a goroutine child. A goroutine child that ignores
// its context cannot be ended, only abandoned and reported as [*StuckError].
//
// # Supervision
//
// A life that ends without being asked to is followed by another one, as the
// child's [Restart] says, and under [WithStrategy] with those of other children. An
// object ends its life by [Fatal], by the return of its Serve, or with its
// process. A request past its KillAfter, or a worker that fails [Liveness], has
// hung: it is asked for its stacks, which go into the error and an [EventHung], and
// its life is ended. [Recycle] replaces lives that are well. A supervisor hangs
// below another one by [Supervisor.AsChild].
//
// # Values
//
// A goroutine child shares arguments and results by reference unless
// [WithCopy] is given. A process child gets copies: scalars, strings and slices
// of them in a compact form, all else by encoding/gob, whose rules hold inside
// structs: an empty slice in a field arrives nil, a pointer to a zero value
// arrives nil. At the top level nil and empty are kept apart. A value that would
// lose something silently, such as a non-zero unexported field, is refused with
// [ErrEncode]. Workers are trusted: they are our own code that may crash, hang or
// be confused, not an attacker's.
package supervisor
