package supervisor

import (
	"fmt"
	"math"
	"time"

	"github.com/workerlink/supervisor/internal/restart"
)

// RestartType says after which ends a child is started again.
type RestartType int

const (
	// Permanent children are started again after every end that was not asked for.
	Permanent RestartType = iota
	// Transient children are started again unless they ended in order: their
	// Serve returned nil, or their process exited with code 0 and owed no reply.
	Transient
	// Temporary children are never started again by themselves, nor with others
	// by a [Strategy].
	Temporary
)

// PanicAction says what a panic in a handler does to the life.
type PanicAction int

const (
	// KeepObject makes a panic no more than its request's error.
	KeepObject PanicAction = iota
	// EndLife ends the life after that error: what the panic left half-done
	// is thrown away with the object.
	EndLife
)

// GiveUpAction says what happens when a child has died too often.
type GiveUpAction int

const (
	// GiveUpChild leaves the child ended; its requests get [ErrRestartLimit].
	GiveUpChild GiveUpAction = iota
	// GiveUpSupervisor stops the supervisor in order; its Err is then
	// [ErrRestartLimit] with the last cause. Below another supervisor that is a
	// death, which the policy there decides upon. A [Temporary] child has no
	// limit, so it takes nobody with it.
	GiveUpSupervisor
)

// Restart is the restart policy of a child. The names are those of OTP. A child
// that died too often is given up; [Supervisor.Restart] brings it back.
type Restart struct {
	Type    RestartType   // default Permanent
	Max     int           // restarts within the window, default 5; one more is too often
	Within  time.Duration // the sliding window, default 10 s
	Backoff Backoff
	OnPanic PanicAction  // default KeepObject
	GiveUp  GiveUpAction // default GiveUpChild
}

// Backoff is the delay before a restart, moved by up to 20 % either way, so
// that children that died together do not come back together. It begins anew
// after a life that was ready for as long as the window of [Restart].
type Backoff struct {
	First time.Duration // before the first restart, default none
	Min   time.Duration // before the second, doubled from then on; default 100 ms
	Max   time.Duration // at most, default 30 s
}

func (r Restart) applyChild(c *childConfig) { c.restart = r }

func (r Restart) policy() restart.Policy {
	p := restart.Policy{Max: r.Max, Within: r.Within, First: r.Backoff.First, Min: r.Backoff.Min, Cap: r.Backoff.Max}
	switch r.Type {
	case Transient:
		p.Type = restart.Transient
	case Temporary:
		p.Type = restart.Temporary
	}
	return p
}

func (r Restart) check() error {
	switch {
	case r.Type < Permanent || r.Type > Temporary:
		return fmt.Errorf("%w: unknown restart type %d", ErrBadArgs, r.Type)
	case r.OnPanic < KeepObject || r.OnPanic > EndLife:
		return fmt.Errorf("%w: unknown PanicAction %d", ErrBadArgs, r.OnPanic)
	case r.GiveUp < GiveUpChild || r.GiveUp > GiveUpSupervisor:
		return fmt.Errorf("%w: unknown GiveUpAction %d", ErrBadArgs, r.GiveUp)
	}
	if err := r.policy().Validate(); err != nil {
		return fmt.Errorf("%w: %s", ErrBadArgs, bare(err))
	}
	return nil
}

// Stop bounds the steps of an orderly end. Negative durations skip their step.
type Stop struct {
	// Grace is how long accepted requests may still be executed, and Close
	// run, after the stop message. Default 5 s.
	Grace time.Duration
	// TermGrace comes after it: handlers' contexts are cancelled and a process
	// group gets SIGTERM. At its end the group gets SIGKILL; a goroutine child
	// is abandoned and reported as [*StuckError]. Default 2 s.
	TermGrace time.Duration
}

func (s Stop) applyChild(c *childConfig) { c.stop = s }

const (
	defaultGrace     = 5 * time.Second
	defaultTermGrace = 2 * time.Second
)

func (s Stop) grace() time.Duration     { return orDefault(s.Grace, defaultGrace) }
func (s Stop) termGrace() time.Duration { return orDefault(s.TermGrace, defaultTermGrace) }

// total is how long an orderly end may take.
func (s Stop) total() time.Duration {
	if sum := s.grace() + s.termGrace(); sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// orDefault gives zero its default; a negative duration means none.
func orDefault(d, def time.Duration) time.Duration {
	switch {
	case d == 0:
		return def
	case d < 0:
		return 0
	default:
		return d
	}
}

// Liveness ends lives that give no sign of life: a worker process that is
// frozen, or an object whose Health(ctx) error hook fails or does not return.
// Health is called beside the requests, so a long request is no illness; an
// object without the hook shows by its process that it lives, so a goroutine
// child needs the hook: without it Register returns [ErrUnsupported], unless its
// factory returns an interface, of which only the life shows what it can do. Time
// in which the host itself stood still does not count. Off by default.
//
// What failed is ended as after [SendPayload].KillAfter, and its requests wait for
// their verdict as long: up to 1 s for the stacks, then [Stop].TermGrace.
type Liveness struct {
	Every   time.Duration // between an answer and the next question; 0 means off
	Timeout time.Duration // for the answer, default 10 s
}

func (l Liveness) applyChild(c *childConfig) { c.watch.liveness = l }

func (l Liveness) timeout() time.Duration { return orDefault(l.Timeout, 10*time.Second) }

// Recycle replaces lives that are still well, against what they pile up. It
// happens between requests only: the life takes no more, what it has accepted is
// executed and answered, the next one goes on. It is no crash and counts for
// nothing in [Restart]. Numbers are lowered by up to a tenth at random, so that
// children that started together are not replaced together. Off by default.
type Recycle struct {
	MaxRequests uint64        // accepted by one life; 0 means no limit. With Rolling a few more, while the next one gets ready
	MaxAge      time.Duration // since it was ready; 0 means no limit
	MaxMemory   int64         // resident bytes of the process that it shares with nobody; 0 means no limit. Process children on Linux only

	// Rolling has the next life ready before this one takes no more. New requests
	// then wait only until the old life has answered those it has accepted: the next
	// life begins with the first one after that, so that no two lives of a child
	// are at work at once, and a handler that takes long holds the others up.
	Rolling bool
}

func (r Recycle) applyChild(c *childConfig) { c.watch.recycle = r }

func (r Recycle) on() bool { return r.MaxRequests > 0 || r.MaxAge > 0 || r.MaxMemory > 0 }

// jittered is what a life that begins now gets; rnd is in [0, 1).
func (r Recycle) jittered(rnd float64) Recycle {
	if r.MaxRequests > 0 {
		r.MaxRequests = max(1, r.MaxRequests-uint64(float64(r.MaxRequests)*rnd/10))
	}
	r.MaxAge -= time.Duration(float64(r.MaxAge) * rnd / 10)
	return r
}

// watchConfig is what is watched while a life is up.
type watchConfig struct {
	liveness Liveness
	recycle  Recycle
}

// healthLimit is how long the Health of an object may take: as long as anybody
// waits for it.
func (w watchConfig) healthLimit() time.Duration {
	if w.liveness.Every == 0 {
		return healthWait
	}
	return max(healthWait, w.liveness.timeout())
}

func (w watchConfig) check() error {
	switch {
	case w.liveness.Every < 0 || w.liveness.Timeout < 0 || w.recycle.MaxAge < 0 || w.recycle.MaxMemory < 0:
		return fmt.Errorf("%w: negative Liveness or Recycle", ErrBadArgs)
	case w.liveness.Timeout > 0 && w.liveness.Every == 0:
		return fmt.Errorf("%w: Liveness.Timeout without Every: nothing would be asked", ErrBadArgs)
	case w.recycle.Rolling && !w.recycle.on():
		return fmt.Errorf("%w: Recycle.Rolling without a limit: nothing would be recycled", ErrBadArgs)
	}
	return nil
}
