package vecenv

import (
	"fmt"
	"time"

	"github.com/workerlink/supervisor"
)

// Options say how a [Vector] runs its environments. The zero value is goroutine
// environments without limits of time, one try for each reset.
type Options struct {
	Kind supervisor.ChildType

	ManualReset bool // do not reset an environment whose episode is over
	// EpisodeNum is how many episodes of each environment are played to their end; a
	// reset begins the next one by itself. 0: no limit. An episode that a failed
	// step cuts short does not count and is begun anew, up to MaxAbnormal times in a row.
	EpisodeNum int
	// MaxAbnormal is how many episodes in a row may be cut short before their
	// environment is given up with an [*AbnormalError]; default 20. One that comes to
	// its end, and a Reset that somebody asks for, begin the count anew; steps that
	// their caller withdraws are left out.
	MaxAbnormal int

	Retry     RetryType
	MaxTry    int           // tries of a reset in all; default 1
	RetryWait time.Duration // before each further one
	GiveUp    GiveUp        // what follows when they are used up, or MaxAbnormal is

	ResetTimeout time.Duration // of each try, from its request to its reply; 0: none
	StepTimeout  time.Duration // likewise
	// HangGrace is how long after its deadline a handler may still run before its
	// environment counts as hung; default 1 s.
	HangGrace time.Duration
	// RenewTimeout is how long a new environment may take to be there; default 30 s.
	RenewTimeout time.Duration

	Child      []supervisor.ChildOption // of each environment, after our own
	Supervisor []supervisor.Option      // such as a logger
}

// RetryType says where a reset that failed is tried again.
type RetryType int

const (
	// RetryReset tries again in the same environment, if it is still there.
	RetryReset RetryType = iota
	// RetryRenew replaces the environment first.
	RetryRenew
)

// GiveUp says what follows when an environment cannot be reset, or its steps
// fail too often.
type GiveUp int

const (
	// GiveUpAll ends the vector.
	GiveUpAll GiveUp = iota
	// GiveUpEnv leaves that environment in [Error], out of which a Reset brings
	// it, and goes on with the others.
	GiveUpEnv
)

// check returns the options with their defaults.
func (o Options) check() (Options, error) {
	switch {
	case o.EpisodeNum < 0 || o.MaxTry < 0 || o.MaxAbnormal < 0:
		return o, fmt.Errorf("%w: vecenv: negative EpisodeNum, MaxAbnormal or MaxTry", supervisor.ErrBadArgs)
	case min(o.RetryWait, o.ResetTimeout, o.StepTimeout, o.HangGrace, o.RenewTimeout) < 0:
		return o, fmt.Errorf("%w: vecenv: negative duration", supervisor.ErrBadArgs)
	case o.Retry < RetryReset || o.Retry > RetryRenew || o.GiveUp < GiveUpAll || o.GiveUp > GiveUpEnv:
		return o, fmt.Errorf("%w: vecenv: unknown Retry or GiveUp", supervisor.ErrBadArgs)
	}
	o.MaxTry = max(o.MaxTry, 1)
	if o.MaxAbnormal == 0 {
		o.MaxAbnormal = 20
	}
	if o.HangGrace == 0 {
		o.HangGrace = time.Second
	}
	if o.RenewTimeout == 0 {
		o.RenewTimeout = 30 * time.Second
	}
	return o, nil
}

// child are the options of each environment's child. How often one may die is
// counted here, by MaxTry, and not there.
func (o Options) child() []supervisor.ChildOption {
	own := []supervisor.ChildOption{
		supervisor.Restart{Max: 1000, Backoff: supervisor.Backoff{Min: 10 * time.Millisecond, Max: time.Second}},
		supervisor.Stop{Grace: o.HangGrace, TermGrace: o.HangGrace},
	}
	return append(own, o.Child...)
}

// killAfter is how long a handler with this deadline may run.
func (o Options) killAfter(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	return timeout + o.HangGrace
}
