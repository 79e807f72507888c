// Package vecenv runs environments of reinforcement learning side by side, each
// a goroutine or a process of its own, and keeps them running: DI-engine's
// EnvSupervisor on the [supervisor] package.
//
// # Batches
//
// A [Vector] has a fixed number of environments with the ids 0, 1, …. Launch
// starts, seeds and resets them; then [Vector.Ready] tells which wait for an
// action and what they saw last, and [Vector.Step] steps those, or some of them:
//
//	ids, seen := v.Ready()
//	steps, err := v.Step(ctx, ids, policy(seen))
//
// Step returns one timestep per action, in their order. A step that fails, is
// late or loses its environment is an abnormal timestep in its place: Info says
// so, and why. Its environment is reset, and so is one whose episode is over, as
// long as it has episodes left; Step returns when all that is done.
//
// # Asynchronous use
//
// The twins ResetAsync and StepAsync do not wait. What they ask for comes through
// [Vector.Recv], one [Result] for each request, in the order of arrival; the
// resets that follow from it by themselves come there too, marked Auto.
//
// # What goes wrong
//
// A reset that fails is tried again after RetryWait, up to MaxTry times in all,
// in the same environment or in a new one. Environments wait for that one by one,
// on timers of their own. Deadlines are absolute and begin with the request. One
// that heeds its context at the deadline is kept. One that does not has hung: it
// is killed, with its stacks in the events, and another takes its place before
// anything else is asked of it. One that cannot be reset ends the whole vector,
// or only itself, as Options.GiveUp says; the error is a [*FailedError]. So does one
// whose steps cut MaxAbnormal episodes short in a row; that is an [*AbnormalError].
//
// Each request ends exactly once, whatever happens. After Close, or a failure,
// the vector can be launched again.
package vecenv
